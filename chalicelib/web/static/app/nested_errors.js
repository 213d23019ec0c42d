// Bodies that hold their fields one level deeper than the form: what is wrong comes back under the names that the form has.

/** The answer of `sent()`; a failure names its fields without `prefix`. */
export async function unnested(prefix, sent) {
  try {
    return await sent();
  } catch (error) {
    if (error.fields) error.fields = error.fields.map((each) => ({ ...each, field: without(prefix, each.field) }));
    throw error;
  }
}

const without = (prefix, field) => (field.startsWith(`${prefix}.`) ? field.slice(prefix.length + 1) : field);
