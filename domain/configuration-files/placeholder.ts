/** Escapes a text so that it contains no placeholder. */
export function escapePlaceholders(text: string): string {
  return text.replaceAll('${', () => '$${');
}

export function placeholderOf(variable: string): string {
  return `\${${variable}}`;
}

export class SecretVariableNames {
  readonly #tenant: string;
  readonly #usedNames = new Set<string>();

  constructor(tenant: string) {
    this.#tenant = tenant;
  }

  /** @param what the secret is, in capitals. @returns a name such as `ACME_PID_CLAIMS_WEBHOOK_KEY`. */
  next(name: string, what: string): string {
    const plain = [this.#tenant, name, what]
      .join('_')
      .toUpperCase()
      .replaceAll(/[^A-Z0-9]+/g, '_');
    const preferred = /^\d/.test(plain) ? `_${plain}` : plain;
    let candidate = preferred;
    for (let number = 2; this.#usedNames.has(candidate); number++) candidate = `${preferred}_${number}`;
    this.#usedNames.add(candidate);
    return candidate;
  }
}
