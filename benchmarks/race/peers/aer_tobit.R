# AER::tobit of every task in every folder: X.csv (N x K), Y.csv (N x T), bounds.csv (2 x T), all
# without a header. Writes coef.csv (1 + K rows, T columns) and sigma.csv (T values).
suppressPackageStartupMessages(library(AER))

# A task that the features do not determine keeps its constant.
fit_task <- function(y, X, lower, upper) {
  task <- data.frame(y = y, X)
  fit <- function(formula) {
    suppressWarnings(tobit(formula, left = lower, right = upper, data = task))
  }
  model <- tryCatch(fit(y ~ .), error = function(e) NULL)
  if (is.null(model) || anyNA(coef(model)) || !is.finite(model$scale)) model <- fit(y ~ 1)
  beta <- numeric(1 + ncol(X))
  beta[seq_along(coef(model))] <- coef(model)
  list(beta = beta, sigma = model$scale)
}

for (folder in commandArgs(trailingOnly = TRUE)) {
  read <- function(name) as.matrix(read.csv(file.path(folder, name), header = FALSE))
  X <- read("X.csv")
  Y <- read("Y.csv")
  bounds <- read("bounds.csv")
  fits <- lapply(seq_len(ncol(Y)), function(t) {
    known <- !is.na(Y[, t])
    fit_task(Y[known, t], X[known, , drop = FALSE], bounds[1, t], bounds[2, t])
  })
  write <- function(values, name) {
    write.table(values, file.path(folder, name), sep = ",", row.names = FALSE, col.names = FALSE)
  }
  write(sapply(fits, `[[`, "beta"), "coef.csv")
  write(sapply(fits, `[[`, "sigma"), "sigma.csv")
}
