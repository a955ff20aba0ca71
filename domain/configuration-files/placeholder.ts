/** Writes a text such that it is read back as it is, and not as a placeholder. */
export function escapePlaceholders(text: string): string {
  return text.replaceAll('${', () => '$${');
}

/** Stands for what a variable holds. */
export function placeholderOf(variable: string): string {
  return `\${${variable}}`;
}

/** Names of the variables that secrets of one tenant are to be put in; no two are alike. */
export class SecretNames {
  readonly #tenant: string;
  readonly #taken = new Set<string>();

  constructor(tenant: string) {
    this.#tenant = tenant;
  }

  /** @param what it is, in capitals. @returns such as `ACME_PID_CLAIMS_WEBHOOK_KEY`. */
  next(name: string, what: string): string {
    const plain = [this.#tenant, name, what]
      .join('_')
      .toUpperCase()
      .replaceAll(/[^A-Z0-9]+/g, '_');
    const wanted = /^\d/.test(plain) ? `_${plain}` : plain;
    let free = wanted;
    for (let number = 2; this.#taken.has(free); number++) free = `${wanted}_${number}`;
    this.#taken.add(free);
    return free;
  }
}
