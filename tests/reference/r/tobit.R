# Reference values for censored regression: reads data.csv, writes
# tobit_expected.csv (columns problem, quantity, term, value).
# Run in this folder with: Rscript tobit.R

suppressPackageStartupMessages(library(AER)) # tobit(); loads survival, too

data <- read.csv("data.csv")
features <- ~ age + volume + apoe4 + marker
tight <- survreg.control(rel.tolerance = 1e-14, maxiter = 200)

# ---- Helpers ---------------------------------------------------------------

expected <- NULL

# Add rows to the table of expected values.
add <- function(problem, quantity, term, value) {
  rows <- data.frame(problem, quantity, term, value = unname(value))
  expected <<- rbind(expected, rows)
}

# The same formula with another response.
model <- function(response) update(features, as.formula(paste(response, "~ .")))

terms_of <- function(fit) sub("(Intercept)", "intercept", names(coef(fit)), fixed = TRUE)

# Standard errors: the last row of the covariance belongs to log(sigma).
add_std_errors <- function(problem, fit, covariance) {
  errors <- sqrt(diag(covariance))
  slopes <- seq_along(coef(fit))
  add(problem, "std_error", terms_of(fit), errors[slopes])
  add(problem, "log_sigma_std_error", "model", errors[-slopes])
}

# Everything about one fit and its intercept-only model.
add_fit <- function(problem, fit, null, covariance = vcov(fit)) {
  add(problem, "coefficient", terms_of(fit), coef(fit))
  add(problem, "sigma", "model", fit$scale)
  add_std_errors(problem, fit, covariance)
  lr <- 2 * (logLik(fit) - logLik(null))
  add(problem, "log_likelihood", "model", logLik(fit))
  add(problem, "null_log_likelihood", "model", logLik(null))
  add(problem, "lr", "slopes", lr)
  add(problem, "lr_p_value", "slopes", pchisq(lr, df = 4, lower.tail = FALSE))
}

# Wald chi-square (2 df) of the hypothesis that age and volume have no effect.
add_wald <- function(problem, fit) {
  both <- c("age", "volume")
  slopes <- coef(fit)[both]
  wald <- drop(slopes %*% solve(vcov(fit)[both, both], slopes))
  add(problem, "wald", "age+volume", wald)
  add(problem, "wald_p_value", "age+volume", pchisq(wald, df = 2, lower.tail = FALSE))
}

# ---- Constant limits -------------------------------------------------------

left <- tobit(model("left"), left = 0, right = Inf, data = data, control = tight)
left_null <- tobit(left ~ 1, left = 0, right = Inf, data = data, control = tight)
add_fit("left", left, left_null)
add_wald("left", left)

right <- tobit(model("right"), left = -Inf, right = 30, data = data, control = tight)
right_null <- tobit(right ~ 1, left = -Inf, right = 30, data = data, control = tight)
add_fit("right", right, right_null)

both <- tobit(model("both"), left = 0, right = 30, data = data, control = tight)
both_null <- tobit(both ~ 1, left = 0, right = 30, data = data, control = tight)
add_fit("both", both, both_null)

# ---- A limit per row, and intervals ----------------------------------------

# Fit with survreg, with and without the features.
add_survreg <- function(problem, response, ...) {
  fit <- survreg(model(response), data = data, control = tight, ...)
  null <- survreg(update(formula(fit), . ~ 1), data = data, control = tight, ...)
  add_fit(problem, fit, null)
}

add_survreg("limit", "Surv(limit, limit > limit_of, type = 'left')", dist = "gaussian")
add_survreg(
  "interval", "Surv(interval_low, interval_high, type = 'interval2')",
  dist = "gaussian"
)

# ---- The problem "left" with other distributions ---------------------------

left_response <- "Surv(left, left > 0, type = 'left')"
add_survreg("left_logistic", left_response, dist = "logistic")
add_survreg("left_t4", left_response, dist = "t", parms = c(df = 4))

# ---- Case weights ----------------------------------------------------------

weighted <- survreg(
  model(left_response), data = data, weights = weight, dist = "gaussian", control = tight
)
weighted_null <- survreg(
  update(formula(weighted), . ~ 1), data = data, weights = weight,
  dist = "gaussian", control = tight
)
add_fit("left_weighted", weighted, weighted_null)

# ---- Robust standard errors ------------------------------------------------

robust <- survreg(
  model(left_response), data = data, dist = "gaussian", control = tight, robust = TRUE
)
add_std_errors("left_robust", robust, vcov(robust))
add_wald("left_robust", robust)

cluster <- survreg(
  model(left_response), data = data, dist = "gaussian", control = tight,
  cluster = visit_of
)
add_std_errors("left_cluster", cluster, vcov(cluster))
add_wald("left_cluster", cluster)

# With case weights survreg(robust = TRUE) leaves the weights out of the scores.
# Here every row's score is multiplied by its weight, as in the likelihood.
influence <- residuals(weighted, type = "dfbeta", weighted = TRUE)
add_std_errors("left_weighted_robust", weighted, crossprod(influence))
add_std_errors(
  "left_weighted_cluster", weighted, crossprod(rowsum(influence, data$visit_of))
)

# ---- Write -----------------------------------------------------------------

expected$value <- sprintf("%.17g", expected$value) # reads back exactly
write.csv(expected, "tobit_expected.csv", row.names = FALSE, quote = FALSE)
