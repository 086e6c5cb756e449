# Reference values for the reduced-rank Tobit: reads reduced_rank.csv, writes
# rrvglm_expected.csv (columns problem, rank, quantity, task, term, value).
# Run in this folder with: Rscript rrvglm.R

suppressPackageStartupMessages(library(VGAM))

data <- read.csv("reduced_rank.csv")
tasks <- paste0("y", 0:3)
expected <- NULL

# Add rows to the table of expected values.
add <- function(problem, rank, quantity, task, term, value) {
  rows <- data.frame(problem, rank, quantity, task, term, value = unname(value))
  expected <<- rbind(expected, rows)
}

# Linear predictors are mean and log scale of the first task, of the second, and
# so on. Features act on the means alone: the rows of A that belong to log scales
# are structural zeros. Intercepts are not reduced (noRRR = ~ 1, the default).
log_scales <- 2 * seq_along(tasks)

# Fit outcomes censored at the bounds, with coefficients of the given rank.
add_fit <- function(problem, rank, lower, upper) {
  lower <- matrix(lower, nrow(data), length(tasks), byrow = TRUE)
  outcomes <- pmin(pmax(as.matrix(data[tasks]), lower), upper)
  # rrvglm warns that it replaces the constraint by which log scales ignore features.
  fit <- suppressWarnings(rrvglm(
    outcomes ~ x0 + x1 + x2 + x3, tobit(Lower = lower, Upper = upper),
    data = data, Rank = rank, str0 = log_scales, epsilon = 1e-14, maxit = 1000
  ))
  estimates <- coef(fit, matrix = TRUE)
  means <- estimates[, log_scales - 1]
  for (t in seq_along(tasks)) {
    add(problem, rank, "coefficient", tasks[t], rownames(means)[-1], means[-1, t])
    add(problem, rank, "intercept", tasks[t], "model", means[1, t])
    add(problem, rank, "sigma", tasks[t], "model", exp(estimates[1, log_scales[t]]))
  }
  add(problem, rank, "log_likelihood", "all", "model", logLik(fit))
}

for (rank in 1:3) {
  add_fit("left", rank, 0, Inf)
  add_fit("both", rank, 0, 2)
}

# The last outcome is above its bound in 6 of 600 rows.
bounds <- c(0, 0, 0, sort(data$y3)[nrow(data) - 6])
for (rank in 1:2) add_fit("rare", rank, bounds, Inf)

expected$value <- sprintf("%.17g", expected$value) # reads back exactly
write.csv(expected, "rrvglm_expected.csv", row.names = FALSE, quote = FALSE)
