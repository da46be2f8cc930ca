//! The Mersenne Twister MT19937 (Matsumoto and Nishimura, 1998), which ONNX's reference implementation draws with
//! (through NumPy's `RandomState`).

const WORDS: usize = 624;
const MIDDLE: usize = 397;

/// Numbers from 0 up to 1 of 53 bits each, two words of 32 bits to each of them.
pub(super) fn fractions(seed: u32) -> impl Iterator<Item = f64> {
    let mut twister = Twister::new(seed);
    std::iter::repeat_with(move || {
        let (high, low) = (twister.next_word() >> 5, twister.next_word() >> 6);
        (f64::from(high) * f64::from(1 << 26) + f64::from(low)) / (1_u64 << 53) as f64
    })
}

struct Twister {
    words: [u32; WORDS],
    at: usize,
}

impl Twister {
    fn new(seed: u32) -> Self {
        let mut words = [seed; WORDS];
        for i in 1..WORDS {
            let before = words[i - 1];
            words[i] = (before ^ before >> 30).wrapping_mul(1_812_433_253).wrapping_add(i as u32);
        }
        Self { words, at: WORDS }
    }

    fn next_word(&mut self) -> u32 {
        if self.at == WORDS {
            self.twist();
            self.at = 0;
        }
        let mut y = self.words[self.at];
        self.at += 1;
        y ^= y >> 11;
        y ^= y << 7 & 0x9d2c_5680;
        y ^= y << 15 & 0xefc6_0000;
        y ^ y >> 18
    }

    fn twist(&mut self) {
        for i in 0..WORDS {
            let joined = self.words[i] & 1 << 31 | self.words[(i + 1) % WORDS] & !(1 << 31);
            let odd = if joined & 1 == 1 { 0x9908_b0df } else { 0 };
            self.words[i] = self.words[(i + MIDDLE) % WORDS] ^ joined >> 1 ^ odd;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ten_thousandth_word_is_as_published() {
        // The C++ standard gives it for `std::mt19937`, whose seed is 5489.
        let mut twister = Twister::new(5489);
        let word = std::iter::repeat_with(|| twister.next_word()).nth(9999);
        assert_eq!(word, Some(4_123_659_995));
    }
}
