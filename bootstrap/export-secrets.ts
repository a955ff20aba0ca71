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

type Secret = { readonly name: string; readonly path: string; readonly member: string };

/** A file for the values, without any. */
export function secretsExample(tenant: string, secrets: readonly Secret[]): string {
  const lines = secrets.flatMap(({ name, path, member }) => [`# ${tenant}/${path}: ${member}`, `${name}=`]);
  return [
    `# Variables that the files of the tenant ${tenant} name. No value is exported.`,
    ...lines,
    '',
  ].join('\n');
}
