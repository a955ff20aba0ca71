import { needs } from '../needs.ts';
import { Kms } from '../ports/kms.ts';

/** The KMS providers at which keys can be born, the default one first. */
export class ListKeyProviders extends needs({ kms: Kms }) {
  async execute(): Promise<ReturnType<Kms['providers']>> {
    return this.ports.kms.providers();
  }
}
