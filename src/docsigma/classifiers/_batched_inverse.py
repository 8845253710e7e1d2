"""Inverses of many small positive definite matrices."""

from __future__ import annotations

import torch

# Below this size LAPACK is as fast as the products that would replace it.
_LEAF_SIZE = 50


class BatchedInverse:
    r"""Inverse and log determinant of a batch of positive definite matrices.

    LAPACK reaches a tenth of the machine on matrices of a few hundred rows; a
    batched product reaches most of it. So the matrix is halved,

    .. math::

        \begin{pmatrix} P & Q^T \\ Q & R \end{pmatrix}^{-1} =
        \begin{pmatrix} P^{-1} + X^T Z X & -X^T Z \\ -Z X & Z \end{pmatrix},
        \quad X = Q P^{-1}, \quad Z = (R - X Q^T)^{-1},

    until the halves are small: :math:`4/3\,K^3` operations, nearly all of them in
    products. Every buffer is made once.

    A call inverts up to `batch_size` matrices of `size` rows.
    """

    def __init__(
        self, batch_size: int, size: int, device: torch.device | None = None
    ) -> None:
        def buffer(*shape: int) -> torch.Tensor:
            return torch.empty(shape, dtype=torch.float64, device=device)

        self.size = size
        self._half = size // 2
        if size <= _LEAF_SIZE:
            self._factor = buffer(batch_size, size, size)
            self._info = torch.empty(batch_size, dtype=torch.int32, device=device)
            return
        first, second = self._half, size - self._half
        self._P = buffer(batch_size, first, first)
        self._R = buffer(batch_size, second, second)
        self._Q = buffer(batch_size, second, first)
        self._X = buffer(batch_size, second, first)
        self._first = BatchedInverse(batch_size, first, device)
        same = first == second
        self._second = (
            self._first if same else BatchedInverse(batch_size, second, device)
        )

    def __call__(self, matrices: torch.Tensor) -> torch.Tensor:
        """Invert `matrices` in place and return their log determinants.

        They are symmetric, in float64. The log determinant is NaN for a matrix that is
        not positive definite.
        """
        n = len(matrices)
        if self.size <= _LEAF_SIZE:
            return self._invert_leaf(matrices)
        h = self._half
        P, Q, R, X = self._P[:n], self._Q[:n], self._R[:n], self._X[:n]
        P.copy_(matrices[:, :h, :h])
        Q.copy_(matrices[:, h:, :h])
        R.copy_(matrices[:, h:, h:])
        log_determinant = self._first(P)
        torch.bmm(Q, P, out=X)
        R.baddbmm_(X, Q.mT, alpha=-1)
        log_determinant += self._second(R)
        torch.bmm(R, X, out=Q)
        P.baddbmm_(X.mT, Q)
        Q.neg_()
        matrices[:, :h, :h] = P
        matrices[:, h:, h:] = R
        matrices[:, h:, :h] = Q
        matrices[:, :h, h:] = Q.mT
        return log_determinant

    def _invert_leaf(self, matrices: torch.Tensor) -> torch.Tensor:
        n = len(matrices)
        factor, info = self._factor[:n], self._info[:n]
        torch.linalg.cholesky_ex(matrices, out=(factor, info))
        log_determinant = 2 * factor.diagonal(dim1=1, dim2=2).log().sum(dim=1)
        failed = info > 0
        if failed.any():
            # A factor that can be inverted, so that the other matrices are served.
            factor[failed] = torch.eye(self.size).to(factor)
            log_determinant[failed] = torch.nan
        if matrices.is_cuda:
            # There cholesky_inverse takes the matrices one by one.
            unit = torch.eye(self.size).to(factor).expand_as(factor)
            half = torch.linalg.solve_triangular(factor, unit, upper=False)
            torch.bmm(half.mT, half, out=matrices)
        else:
            torch.cholesky_inverse(factor, out=matrices)
        return log_determinant
