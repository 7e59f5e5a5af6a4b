//! Parser of claims: comparisons of sums of products.

use super::expression::{Expression, Function, Operation};
use super::token::{Token, Word, tokens};
use super::{Chain, Claim, Fault, Operand, Relation};

/// Maximum nesting of brackets: the parser is recursive, and the stack limited.
const DEEPEST: usize = 50;

/// Maximum length of a claim in bytes: a sum is evaluated recursively, term by term.
const LONGEST: usize = 10_000;

pub(super) fn claim(text: &str) -> Result<Claim, Fault> {
    if text.len() > LONGEST {
        return Err(Fault { at: 0, why: format!("a claim has at most {LONGEST} characters") });
    }
    let mut reader = Reader { text, tokens: tokens(text)?, next: 0, depth: 0 };
    let mut chains = vec![reader.chain()?];
    while reader.sign(&["and"]).is_some() {
        chains.push(reader.chain()?);
    }
    match reader.tokens.get(reader.next) {
        None => Ok(Claim(chains)),
        Some(token) => Err(reader.expected(token.at, "a comparison, 'and' or the end")),
    }
}

struct Reader<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
}

impl Reader<'_> {
    fn chain(&mut self) -> Result<Chain, Fault> {
        let first = self.operand()?;
        let mut then = Vec::new();
        while let Some((sign, _)) = self.sign(&["<", "<=", ">", ">=", "=="]) {
            let relation = match sign {
                "<" => Relation::Less,
                "<=" => Relation::AtMost,
                ">" => Relation::More,
                "==" => Relation::Equal,
                _ => Relation::AtLeast,
            };
            then.push((relation, self.operand()?));
        }
        if then.is_empty() {
            let at = self.tokens.get(self.next).map_or(self.text.len(), |token| token.at);
            return Err(self.expected(at, "a comparison, <, <=, >, >= or =="));
        }
        Ok(Chain { first, then })
    }

    fn operand(&mut self) -> Result<Operand, Fault> {
        let first = self.next;
        let value = self.sum()?;
        let (at, end) = (self.tokens[first].at, self.tokens[self.next - 1].end);
        Ok(Operand { text: self.text[at..end].to_owned(), at, value })
    }

    fn sum(&mut self) -> Result<Expression, Fault> {
        let mut sum = self.product()?;
        while let Some((sign, at)) = self.sign(&["+", "-"]) {
            let operation = if sign == "+" { Operation::Plus } else { Operation::Minus };
            sum = Expression::Binary { operation, at, sides: Box::new([sum, self.product()?]) };
        }
        Ok(sum)
    }

    fn product(&mut self) -> Result<Expression, Fault> {
        let mut product = self.atom()?;
        while let Some((sign, at)) = self.sign(&["*", "/"]) {
            let operation = if sign == "*" { Operation::Times } else { Operation::Divided };
            let sides = Box::new([product, self.atom()?]);
            product = Expression::Binary { operation, at, sides };
        }
        Ok(product)
    }

    fn atom(&mut self) -> Result<Expression, Fault> {
        const WANTED: &str = "a number, a time, a result or '('";
        let Some(token) = self.tokens.get(self.next).cloned() else {
            return Err(self.expected(self.text.len(), WANTED));
        };
        self.next += 1;
        match token.word {
            Word::Value(value) => Ok(Expression::Value(value)),
            Word::Sign("(") => {
                let inner = self.deeper(token.at, Reader::sum)?;
                self.close("')'")?;
                Ok(inner)
            }
            Word::Name(name) if self.sign(&["("]).is_some() => {
                let function = match name.as_str() {
                    "max" => Function::Max,
                    "min" => Function::Min,
                    "mean" => Function::Mean,
                    _ => {
                        let why = format!("unknown function '{name}': use max, min or mean");
                        return Err(Fault { at: token.at, why });
                    }
                };
                let all = self.deeper(token.at, Reader::list)?;
                self.close("',' or ')'")?;
                Ok(Expression::Aggregate { function, at: token.at, all })
            }
            Word::Name(name) => Ok(Expression::Result { name, at: token.at }),
            Word::Sign(_) => Err(self.expected(token.at, WANTED)),
        }
    }

    fn list(&mut self) -> Result<Vec<Expression>, Fault> {
        let mut all = vec![self.sum()?];
        while self.sign(&[","]).is_some() {
            all.push(self.sum()?);
        }
        Ok(all)
    }

    fn deeper<T>(
        &mut self,
        at: usize,
        read: impl FnOnce(&mut Self) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        self.depth += 1;
        if self.depth > DEEPEST {
            let why = format!("brackets can't be nested more than {DEEPEST} deep");
            return Err(Fault { at, why });
        }
        let inner = read(self)?;
        self.depth -= 1;
        Ok(inner)
    }

    fn close(&mut self, wanted: &str) -> Result<(), Fault> {
        if self.sign(&[")"]).is_some() {
            return Ok(());
        }
        let at = self.tokens.get(self.next).map_or(self.text.len(), |token| token.at);
        Err(self.expected(at, wanted))
    }

    /// Consumes the next token if it is one of these signs, and returns it with its byte offset.
    fn sign(&mut self, signs: &[&str]) -> Option<(&'static str, usize)> {
        match self.tokens.get(self.next) {
            Some(Token { word: Word::Sign(sign), at, .. }) if signs.contains(sign) => {
                self.next += 1;
                Some((sign, *at))
            }
            _ => None,
        }
    }

    fn expected(&self, at: usize, wanted: &str) -> Fault {
        let found = self.tokens.iter().find(|token| token.at == at);
        let found = found.map_or("the end", |token| &self.text[token.at..token.end]);
        Fault { at, why: format!("expected {wanted}, found {found}") }
    }
}
