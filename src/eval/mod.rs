//! The reference evaluator: what every HLO program means, readable and never fast.
//!
//! One value at a time, in the widest arithmetic that is exact for the type, rounded to the type
//! after each elementwise op. Sums and products over many elements (dot, convolution, monoid
//! reductions) accumulate in f64 and round once. Transcendental functions come from a portable
//! library, so results do not depend on the host.
//!
//! A program of several devices runs on as many threads, one evaluator each, which meet at every
//! collective.
//!
//! It does not check modules; run the verifier first.

mod bits;
mod collective;
mod complex;
mod conv;
mod custom_call;
mod dot;
mod dynamic;
mod elementwise;
mod fft;
mod gather;
mod interpret;
mod linalg;
mod movement;
mod norm;
mod reduce;
mod rng;
mod scalar_body;
mod sort;
mod window;

pub use custom_call::check_calls;
pub use interpret::evaluate;
pub use interpret::evaluate_on;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::codes;
    use crate::literal::text;

    fn value(body: &str) -> crate::base::Result<String> {
        let module = crate::front::hlo_text::parse(&format!("HloModule m\nENTRY e {{ {body} }}"))?;
        Ok(text::print(&evaluate(&module, &[])?))
    }

    #[test]
    fn products_of_the_largest_numbers_wrap() {
        let body = "a = u64[] constant(18446744073709551615) \
                    high = u64[] mulhi(a, a) low = u64[] multiply(a, a) three = u64[] constant(3) \
                    cube = u64[] power(a, three) ROOT t = (u64[], u64[], u64[]) tuple(high, low, cube)";
        // (2^64 - 1)^2 = (2^64 - 2) 2^64 + 1, and (-1)^3 = -1.
        let wanted = "(18446744073709551614, 1, 18446744073709551615)";
        assert_eq!(value(body).unwrap(), wanted);
    }

    #[test]
    fn operands_that_leave_out_elements_are_not_known() {
        let body = "a = f32[1,2] constant({{1, 2}}) b = f32[4,1] constant({{1}, {2}, {3}, {4}}) \
                    places = u16[1,1] constant({{4}}) ROOT r = f32[1,1] dot(a, b, places), \
                    lhs_contracting_dims={1}, rhs_contracting_dims={0}, sparsity=L.1@2:4";
        let refused = value(body).map_err(|d| d.code);
        assert_eq!(refused, Err(codes::EVAL_UNSUPPORTED));
    }

    #[test]
    fn ragged_batches_are_whole_products() {
        let body = "a = f32[2,1,1] constant({{{1}}, {{2}}}) w = f32[2,1,1] constant({{{3}}, {{4}}}) \
                    s = s32[2] constant({1, 1}) ROOT r = f32[2,1,1] ragged-dot(a, w, s), \
                    lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, \
                    rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={}";
        assert_eq!(value(body).unwrap(), "{{{3}}, {{8}}}");
    }

    #[test]
    fn batches_of_group_sizes_are_not_known() {
        let body = "a = f32[2,1] constant({{1}, {2}}) w = f32[2,1,1] constant({{{3}}, {{4}}}) \
                    s = s32[2,2] constant({{1, 1}, {2, 0}}) ROOT r = f32[2,1] ragged-dot(a, w, s), \
                    lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, \
                    rhs_group_dims={0}";
        assert_eq!(value(body).unwrap_err().code, codes::EVAL_UNSUPPORTED);
    }
}
