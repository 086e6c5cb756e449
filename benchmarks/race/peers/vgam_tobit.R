# VGAM's reduced-rank Tobit of all tasks in every folder: X.csv (N x K), Y.csv (N x T) without gaps,
# bounds.csv (2 x T), rank.csv (one number), all without a header. Writes coef.csv (1 + K rows,
# T columns) and sigma.csv (T values).
suppressPackageStartupMessages(library(VGAM))

for (folder in commandArgs(trailingOnly = TRUE)) {
  read <- function(name) as.matrix(read.csv(file.path(folder, name), header = FALSE))
  X <- read("X.csv")
  Y <- read("Y.csv")
  bounds <- read("bounds.csv")
  n_tasks <- ncol(Y)
  family <- tobit(Lower = bounds[1, ], Upper = bounds[2, ], byrow.arg = TRUE)
  rank <- read("rank.csv")[1, 1]
  # Linear predictors are mean and log scale of the first task, of the second, and so on; features
  # act on means alone.
  scales <- 2 * seq_len(n_tasks)
  model <- suppressWarnings(
    if (n_tasks > 1) rrvglm(Y ~ X, family, Rank = rank, str0 = scales) else vglm(Y ~ X, family)
  )
  estimates <- coef(model, matrix = TRUE)
  write <- function(values, name) {
    write.table(values, file.path(folder, name), sep = ",", row.names = FALSE, col.names = FALSE)
  }
  write(estimates[, scales - 1, drop = FALSE], "coef.csv")
  write(exp(estimates[1, scales]), "sigma.csv")
}
