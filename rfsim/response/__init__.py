"""Small-noise response of any differentiable model: gradient descent plus what the sampling noise leaves behind.

For theta_{t+1} = D_t(theta_t) - eta_t xi_t with D_t(theta) = theta - eta_t grad L(theta), E xi = 0 and
Cov xi = Sigma(theta_t)/B_t,

    E L_val(theta_n) ~ F(n) + sum_{s<n} (eta_s^2/B_s) K(n, s),
    K(n, s) = (1/2) Tr[Sigma(theta_s) Hess G_{n,s+1}(theta_{s+1})],   G_{n,s} = L_val o D_{n-1} o ... o D_s,

on the noise-free path theta_s. The baseline F(n) is the loss of noise-free gradient descent, with factors
(1 - eta l)^2; it is not the forcing F_t of the Volterra equation, whose factors carry the extra eta^2 l^2/B.
"""

from rfsim.response.expansion import Response, probed_response, response_kernel, small_noise_response
from rfsim.response.linear import linear_response

__all__ = ["Response", "linear_response", "probed_response", "response_kernel", "small_noise_response"]
