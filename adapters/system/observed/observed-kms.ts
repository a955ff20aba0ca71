import { Kms, type SigningKey, type ToSign } from '../../../application/ports/kms.ts';
import type { Observer } from './observer.ts';

/** Key providers whose calls are measured and traced. */
export class ObservedKms extends Kms {
  readonly #kms: Kms;
  readonly #observer: Observer;

  constructor(kms: Kms, observer: Observer) {
    super();
    this.#kms = kms;
    this.#observer = observer;
  }

  override sign(key: SigningKey, data: ToSign): Uint8Array | Promise<Uint8Array> {
    return this.#signing(key, 1, () => this.#kms.sign(key, data));
  }

  override signMany(key: SigningKey, datas: readonly ToSign[]): ReturnType<Kms['signMany']> {
    return this.#signing(key, datas.length, () => this.#kms.signMany(key, datas));
  }

  override generate(...parameters: Parameters<Kms['generate']>): ReturnType<Kms['generate']> {
    return this.#observer.run('kms generate', {}, () => this.#kms.generate(...parameters));
  }

  override import(...parameters: Parameters<Kms['import']>): ReturnType<Kms['import']> {
    return this.#observer.run('kms import', {}, () => this.#kms.import(...parameters));
  }

  override copyToProvider(...parameters: Parameters<Kms['copyToProvider']>): ReturnType<Kms['copyToProvider']> {
    return this.#observer.run('kms take over', {}, () => this.#kms.copyToProvider(...parameters));
  }

  override assertReady(key: SigningKey): void {
    this.#kms.assertReady(key);
  }

  override remove(key: SigningKey): Promise<void> {
    return this.#observer.run('kms remove', {}, () => this.#kms.remove(key));
  }

  override providers(tenantId?: string): ReturnType<Kms['providers']> {
    return this.#kms.providers(tenantId);
  }

  override providerOf(tenantId: string): string {
    return this.#kms.providerOf(tenantId);
  }

  override assertReachable(provider: string): Promise<void> {
    return this.#kms.assertReachable(provider);
  }

  #signing<T>({ handle }: SigningKey, count: number, work: () => T): T {
    const provider = handle.kms;
    return this.#observer.run('kms sign', { provider, count }, work, (metrics, seconds, error) =>
      metrics.signatures(provider, error === undefined ? 'signed' : 'failed', count, seconds),
    );
  }
}
