# Linear mixed models by maximum likelihood (not REML), with tight control: what the mixed Tobit is
# where nothing is censored.
library(lme4)
sets <- list(
  sleepstudy = list(data = lme4::sleepstudy, y = "Reaction", x = "Days", person = "Subject"),
  Orthodont = list(data = as.data.frame(nlme::Orthodont), y = "distance", x = "age", person = "Subject"),
  Oxboys = list(data = as.data.frame(nlme::Oxboys), y = "height", x = "age", person = "Subject")
)
control <- lmerControl(optimizer = "nloptwrap", calc.derivs = FALSE,
                       optCtrl = list(algorithm = "NLOPT_LN_BOBYQA", xtol_abs = 1e-12, ftol_abs = 1e-13,
                                      xtol_rel = 1e-14, ftol_rel = 1e-15, maxeval = 1e5))
rows <- lapply(names(sets), function(name) {
  with(sets[[name]], {
    formula <- as.formula(sprintf("%s ~ %s + (%s | %s)", y, x, x, person))
    fit <- lmer(formula, data, REML = FALSE, control = control)
    # A second start, from the first end: BOBYQA ends early otherwise.
    fit <- update(fit, start = getME(fit, "theta"))
    D <- VarCorr(fit)[[person]]
    data.frame(problem = name,
               quantity = c("(intercept)", "slope", "log(sigma)", "D1", "D2", "D3", "log_likelihood"),
               value = c(fixef(fit), log(sigma(fit)), D[1, 1], D[1, 2], D[2, 2], logLik(fit)))
  })
})
found <- do.call(rbind, rows)
found$value <- sprintf("%.12g", found$value)
write.csv(found, "lme4_expected.csv", row.names = FALSE, quote = FALSE)
