//! Rotations of a plane, and decompositions of matrices of two rows and columns.

use crate::linalg::scalar::EPSILON;
use crate::linalg::scalar::SAFE_MIN;

/// The rotation (c, s) with `c f + s g = r` and `c g - s f = 0`, and r. c is not negative.
pub(super) fn rotation(f: f64, g: f64) -> (f64, f64, f64) {
    if g == 0.0 {
        return (1.0, 0.0, f);
    }
    if f == 0.0 {
        return (0.0, 1f64.copysign(g), g.abs());
    }
    let unit = f.abs().max(g.abs()).clamp(SAFE_MIN, 1.0 / SAFE_MIN);
    let fits = |x: f64| x.abs() > 1e-153 && x.abs() < 1e153;
    let unit = if fits(f) && fits(g) { 1.0 } else { unit };
    let (f, g) = (f / unit, g / unit);
    let length = (f * f + g * g).sqrt();
    let r = length.copysign(f);
    (f.abs() / length, g / r, r * unit)
}

/// The eigenvalues of the symmetric matrix of `a`, `b` beside the diagonal, and `c`: the one of
/// larger absolute value, the other, and the unit vector of the first.
pub(super) fn symmetric_pair(a: f64, b: f64, c: f64) -> (f64, f64, (f64, f64)) {
    let (sum, difference) = (a + c, a - c);
    let twice = b + b;
    let (larger, smaller) = if a.abs() > c.abs() { (a, c) } else { (c, a) };
    let root = difference.hypot(twice);
    let (first, second, sign) = if sum == 0.0 {
        (root / 2.0, -root / 2.0, 1.0)
    } else {
        let sign = if sum < 0.0 { -1.0 } else { 1.0 };
        let first = 0.5 * (sum + sign * root);
        // The product of both is the determinant.
        let second = (larger / first) * smaller - (b / first) * b;
        (first, second, sign)
    };
    let other = if difference >= 0.0 { 1.0 } else { -1.0 };
    let cosine = difference + other * root;
    let (mut c1, mut s1);
    if cosine.abs() > twice.abs() {
        let cotangent = -twice / cosine;
        s1 = 1.0 / (1.0 + cotangent * cotangent).sqrt();
        c1 = cotangent * s1;
    } else if twice == 0.0 {
        (c1, s1) = (1.0, 0.0);
    } else {
        let tangent = -cosine / twice;
        c1 = 1.0 / (1.0 + tangent * tangent).sqrt();
        s1 = tangent * c1;
    }
    if sign == other {
        (c1, s1) = (-s1, c1);
    }
    (first, second, (c1, s1))
}

/// The smaller and the larger singular value of the triangle of `f`, `g` above the diagonal, and
/// `h`.
pub(super) fn triangle_values(f: f64, g: f64, h: f64) -> (f64, f64) {
    let (f, g, h) = (f.abs(), g.abs(), h.abs());
    let (small, large) = (f.min(h), f.max(h));
    if small == 0.0 {
        return (0.0, large.hypot(g));
    }
    let (sum, gap) = (1.0 + small / large, (large - small) / large);
    if g < large {
        let ratio = (g / large) * (g / large);
        let c = 2.0 / ((sum * sum + ratio).sqrt() + (gap * gap + ratio).sqrt());
        return (small * c, large / c);
    }
    let ratio = large / g;
    if ratio == 0.0 {
        return (small * large / g, g);
    }
    let (x, y) = (sum * ratio, gap * ratio);
    let c = 1.0 / ((1.0 + x * x).sqrt() + (1.0 + y * y).sqrt());
    ((small * c) * ratio * 2.0, g / (c + c))
}

/// A singular value decomposition of the triangle of `f`, `g` above the diagonal, and `h`.
pub(super) struct TriangleSvd {
    /// The value of larger absolute value, signed.
    pub(super) larger: f64,
    /// The other one, signed.
    pub(super) smaller: f64,
    /// Cosine and sine of the rotation on the left.
    pub(super) left: (f64, f64),
    /// Cosine and sine of the rotation on the right.
    pub(super) right: (f64, f64),
}

/// The decomposition; left and right rotations make the triangle diagonal.
pub(super) fn triangle_svd(f: f64, g: f64, h: f64) -> TriangleSvd {
    let is_swapped = h.abs() > f.abs();
    let (ft, ht) = if is_swapped { (h, f) } else { (f, h) };
    let (fa, ha, ga) = (ft.abs(), ht.abs(), g.abs());
    let (smaller, larger, left, right);
    if ga == 0.0 {
        (smaller, larger) = (ha, fa);
        (left, right) = ((1.0, 0.0), (1.0, 0.0));
    } else if ga > fa && fa / ga < EPSILON {
        // Next to g nothing else counts.
        larger = ga;
        smaller = if ha > 1.0 {
            fa / (ga / ha)
        } else {
            (fa / ga) * ha
        };
        left = (1.0, ht / g);
        right = (ft / g, 1.0);
    } else {
        let d = fa - ha;
        let l = if d == fa { 1.0 } else { d / fa };
        let m = g / ft;
        let t = 2.0 - l;
        let mm = m * m;
        let s = (t * t + mm).sqrt();
        let r = if l == 0.0 {
            m.abs()
        } else {
            (l * l + mm).sqrt()
        };
        let a = 0.5 * (s + r);
        (smaller, larger) = (ha / a, fa * a);
        let t = if mm == 0.0 {
            if l == 0.0 {
                2f64.copysign(ft) * 1f64.copysign(g)
            } else {
                g / d.copysign(ft) + m / t
            }
        } else {
            (m / (s + t) + m / (r + l)) * (1.0 + a)
        };
        let l = (t * t + 4.0).sqrt();
        right = (2.0 / l, t / l);
        left = ((right.0 + right.1 * m) / a, (ht / ft) * right.1 / a);
    }
    let (left, right) = if is_swapped {
        ((right.1, right.0), (left.1, left.0))
    } else {
        (left, right)
    };
    let sign = |x: f64| 1f64.copysign(x);
    // The sign of the largest of the three decides.
    let of_larger = if ga > fa {
        sign(right.1) * sign(left.0) * sign(g)
    } else if is_swapped {
        sign(right.1) * sign(left.1) * sign(h)
    } else {
        sign(right.0) * sign(left.0) * sign(f)
    };
    TriangleSvd {
        larger: larger.copysign(of_larger),
        smaller: smaller.copysign(of_larger * sign(f) * sign(h)),
        left,
        right,
    }
}

/// A real matrix of two rows and columns in its standard form: upper triangular, or with equal
/// diagonal elements and others of opposite sign.
pub(super) struct Standard {
    /// The elements a, b, c, d, row by row.
    pub(super) matrix: [f64; 4],
    /// Eigenvalues, real and imaginary parts.
    pub(super) values: [(f64, f64); 2],
    /// The rotation that leads there.
    pub(super) rotation: (f64, f64),
}

/// Brings a matrix, given row by row in numbers of that precision, to its standard form.
pub(super) fn standardize([a, b, c, d]: [f64; 4], ulp: f64) -> Standard {
    let sign = |x: f64| 1f64.copysign(x);
    let (matrix, rotation) = if c == 0.0 {
        ([a, b, c, d], (1.0, 0.0))
    } else if b == 0.0 {
        ([d, -c, 0.0, a], (0.0, 1.0))
    } else if a - d == 0.0 && sign(b) != sign(c) {
        ([a, b, c, d], (1.0, 0.0))
    } else {
        let half = 0.5 * (a - d);
        let larger = b.abs().max(c.abs());
        let smaller = b.abs().min(c.abs()) * sign(b) * sign(c);
        let unit = half.abs().max(larger);
        let z = (half / unit) * half + (larger / unit) * smaller;
        if z >= 4.0 * ulp {
            // Two real eigenvalues.
            let z = half + (unit.sqrt() * z.sqrt()).copysign(half);
            let length = c.hypot(z);
            let matrix = [d + z, b - c, 0.0, d - (larger / z) * smaller];
            (matrix, (z / length, c / length))
        } else {
            nearly_equal([a, b, c, d])
        }
    };
    let [a, b, c, d] = matrix;
    let imaginary = if c == 0.0 {
        0.0
    } else {
        b.abs().sqrt() * c.abs().sqrt()
    };
    Standard {
        matrix,
        values: [(a, imaginary), (d, if c == 0.0 { 0.0 } else { -imaginary })],
        rotation,
    }
}

/// Complex eigenvalues, or real ones that are nearly equal: the diagonal is made equal.
fn nearly_equal([a, b, c, d]: [f64; 4]) -> ([f64; 4], (f64, f64)) {
    let sign = |x: f64| 1f64.copysign(x);
    let (mut sum, mut difference) = (b + c, a - d);
    let unit = difference.abs().max(sum.abs());
    if !(1e-140..1e140).contains(&unit) && unit > 0.0 {
        sum /= unit;
        difference /= unit;
    }
    let half = 0.5 * difference;
    let length = sum.hypot(difference);
    let cosine = (0.5 * (1.0 + sum.abs() / length)).sqrt();
    let sine = -(half / (length * cosine)) * sign(sum);
    let (aa, bb) = (a * cosine + b * sine, b * cosine - a * sine);
    let (cc, dd) = (c * cosine + d * sine, d * cosine - c * sine);
    let (a, b) = (aa * cosine + cc * sine, bb * cosine + dd * sine);
    let (c, d) = (cc * cosine - aa * sine, dd * cosine - bb * sine);
    let mean = 0.5 * (a + d);
    if c == 0.0 {
        return ([mean, b, c, mean], (cosine, sine));
    }
    if b == 0.0 {
        return ([mean, -c, 0.0, mean], (-sine, cosine));
    }
    if sign(b) != sign(c) {
        return ([mean, b, c, mean], (cosine, sine));
    }
    // Two real eigenvalues after all.
    let (root_b, root_c) = (b.abs().sqrt(), c.abs().sqrt());
    let offset = (root_b * root_c).copysign(c);
    let length = (b + c).abs().sqrt();
    let (c1, s1) = (root_b / length, root_c / length);
    let rotation = (cosine * c1 - sine * s1, cosine * s1 + sine * c1);
    ([mean + offset, b - c, 0.0, mean - offset], rotation)
}
