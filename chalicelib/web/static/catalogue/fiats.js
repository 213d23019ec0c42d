// The fiat currencies that a price may be in, with the digits that each has behind the point: as in the service's own list.
export const FIATS = {
  USD: 2, EUR: 2, GBP: 2,
  AED: 2, ARS: 2, AUD: 2, BDT: 2, BHD: 3, BMD: 2, BRL: 2, CAD: 2, CHF: 2, CLP: 0, CNY: 2, CZK: 2,
  DKK: 2, GEL: 2, HKD: 2, HUF: 2, IDR: 2, ILS: 2, INR: 2, JPY: 0, KRW: 0, KWD: 3, LKR: 2, MMK: 2,
  MXN: 2, MYR: 2, NGN: 2, NOK: 2, NZD: 2, PHP: 2, PKR: 2, PLN: 2, RUB: 2, SAR: 2, SEK: 2, SGD: 2,
  THB: 2, TRY: 2, TWD: 2, UAH: 2, VND: 0, ZAR: 2,
};

const names = new Intl.DisplayNames("en", { type: "currency" });

/** Options of a form: [code, "EUR (Euro)"]. */
export const fiatOptions = () => Object.keys(FIATS).map((code) => [code, `${code} (${names.of(code)})`]);
