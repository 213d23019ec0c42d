"""Rate providers behind `usecases.catalogue.rates.RateProvider`: over HTTP, and the fixed one of the sandbox."""
