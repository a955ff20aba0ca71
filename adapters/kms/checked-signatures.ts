import { randomInt } from 'node:crypto';
import type { PrivateKeyMaterial, ToSign } from '../../application/ports/kms.ts';
import type { RequestSlots } from '../../application/ports/request-slots.ts';
import type { Signatures } from '../../application/ports/signatures.ts';
import type { SigningKey, StoredKey } from '../../domain/keys/signing-key.ts';
import { Failure, OperatorReason } from '../../domain/shared/failure.ts';
import type { SigningAlgorithm } from '../../domain/shared/jwk.ts';
import { KmsProvider } from './kms-provider.ts';

const RETRY_SECONDS = 2;
/** Signatures of one call that are verified: verifying many would take longer than creating them. */
const MAX_VERIFIED = 4;

type Ports = {
  readonly name: string;
  readonly provider: KmsProvider;
  readonly signatures: Signatures;
  /** undefined if no requests are served. */
  readonly requestSlots?: RequestSlots | undefined;
};

/**
 * Provider outside of this process: some signatures of each response are verified before they are used. A wrong one, such as that of
 * another key or of another text of the same call, would cost a wallet its code and leave it with a credential that no verifier accepts.
 */
export class CheckedSignatures extends KmsProvider {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    super();
    this.#ports = ports;
  }

  override get algorithms(): readonly SigningAlgorithm[] {
    return this.#ports.provider.algorithms;
  }

  override generate(tenantId: string, algorithm: SigningAlgorithm): Promise<StoredKey> {
    return this.#releaseSlotWhile((provider) => provider.generate(tenantId, algorithm));
  }

  override import(tenantId: string, privateKey: PrivateKeyMaterial): Promise<StoredKey> {
    return this.#releaseSlotWhile((provider) => provider.import(tenantId, privateKey));
  }

  override async sign(key: SigningKey, data: ToSign): Promise<Uint8Array> {
    const signature = await this.#releaseSlotWhile((provider) => provider.sign(key, data));
    this.#assert(key, data, signature);
    return signature;
  }

  override async signMany(key: SigningKey, datas: readonly ToSign[]): Promise<readonly Uint8Array[]> {
    const signatures = await this.#releaseSlotWhile((provider) => provider.signMany(key, datas));
    for (const index of selectedIndexes(datas.length)) {
      const data = datas[index];
      if (data !== undefined) this.#assert(key, data, signatures[index]);
    }
    return signatures;
  }

  override release(key: SigningKey): Uint8Array {
    return this.#ports.provider.release(key);
  }

  override assertReady(): void {
    this.#ports.provider.assertReady();
  }

  override remove(key: SigningKey): Promise<void> {
    return this.#ports.provider.remove(key);
  }

  override assertReachable(): Promise<void> {
    return this.#ports.provider.assertReachable();
  }

  override close(): Promise<void> {
    return this.#ports.provider.close();
  }

  #releaseSlotWhile<T>(work: (provider: KmsProvider) => T | Promise<T>): Promise<T> {
    const { provider, requestSlots } = this.#ports;
    const call = async () => work(provider);
    return requestSlots === undefined ? call() : requestSlots.releaseSlotWhile(call);
  }

  /** @throws Failure `unavailable`, whose `cause` is for the log. */
  #assert({ publicJwk, handle }: SigningKey, data: ToSign, signature: Uint8Array | undefined): void {
    const { name, signatures } = this.#ports;
    if (publicJwk !== undefined && signature !== undefined && signatures.verify(publicJwk, data, signature)) return;
    throw new Failure(
      'unavailable',
      { message: 'the key cannot be used at present; try again', retryAfterSeconds: RETRY_SECONDS },
      { cause: new OperatorReason(`the key provider "${name}" returned a signature that is not by the key ${handle.keyId}`) },
    );
  }
}

/** Selects all of few signatures; of many the first, which reveals a wrong key, and some random ones, which reveal a wrong order. */
function selectedIndexes(count: number): ReadonlySet<number> {
  if (count <= MAX_VERIFIED) return new Set(Array.from({ length: count }, (_, index) => index));
  return new Set([0, ...Array.from({ length: MAX_VERIFIED - 1 }, () => randomInt(count))]);
}
