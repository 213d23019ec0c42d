// JSON without loss: a number that JavaScript can not hold exactly comes out as its text. Amounts of coins are such numbers.
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const EXACT = /^-?\d{1,15}$/;

/** The value of a JSON text. Raises SyntaxError. */
export function parseJson(text) {
  return JSON.parse(text.replace(TOKEN, (token) => {
    if (token[0] === '"' || EXACT.test(token) || String(Number(token)) === token) return token;
    return `"${token}"`;
  }));
}
