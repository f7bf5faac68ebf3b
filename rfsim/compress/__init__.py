"""Few nodes in place of a large spectrum: one quadrature for both of its measures, good for every schedule and time.

The two measures are forcing energy w_j and kernel weight m_j l_j^2. First the modes become a fine rule of a thousand
nodes or so in narrow bins, with errors of the size of rounding (`fine`). Then the fine rule is cut into wide windows,
and each window becomes the Gauss rule of the mean of its two normalised measures, with interpolatory weights for each
(`gauss`), of the least order that keeps the error below the tolerance *relative to the whole sum* at every time
(`windows`). `integrands` says which functions are compared.
"""

from rfsim.compress.compression import Compression, compress, compress_with_error, compression_error

__all__ = ["Compression", "compress", "compress_with_error", "compression_error"]
