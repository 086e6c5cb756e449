# Mixed Tobit models of lmec's UTIdata by adaptive quadrature: viral loads of 72 people, log10,
# 26 of 362 below the limit of detection. Made with GLMMadaptive 0.9-7; about a minute.
library(GLMMadaptive)
data(UTIdata, package = "lmec")
UTIdata <- UTIdata[!is.na(UTIdata$RNA), ]
UTIdata$low <- UTIdata$RNAcens == 1
outcome <- cbind(log10(UTIdata$RNA), UTIdata$low)
fits <- list(
  intercept = mixed_model(outcome ~ Fup, random = ~ 1 | Patid, data = UTIdata,
                          family = censored.normal(), nAGQ = 21),
  slope = mixed_model(outcome ~ Fup, random = ~ Fup | Patid, data = UTIdata,
                      family = censored.normal(), nAGQ = 15)
)
rows <- lapply(names(fits), function(name) {
  fit <- fits[[name]]
  covariance <- fit$D[lower.tri(fit$D, diag = TRUE)]
  data.frame(problem = name,
             quantity = c("(intercept)", "Fup", "log(sigma)", paste0("D", seq_along(covariance)), "log_likelihood"),
             value = c(fixef(fit), fit$phis, covariance, logLik(fit)))
})
write.csv(do.call(rbind, rows), "glmmadaptive_expected.csv", row.names = FALSE)
