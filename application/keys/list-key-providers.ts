import type { Kms } from '../ports/kms.ts';

/** The KMS providers at which keys can be born, the default one first. */
export class ListKeyProviders {
  readonly #kms: Kms;

  constructor(ports: { readonly kms: Kms }) {
    this.#kms = ports.kms;
  }

  async execute(): Promise<ReturnType<Kms['providers']>> {
    return this.#kms.providers();
  }
}
