import { parseCompactJws } from '../../domain/formats/jose/compact.ts';
import { isCompromised, type KeyChain, leavesOf, selectKeyChain, signingChain } from '../../domain/keys/key-chain.ts';
import { signingKey } from '../../domain/keys/signing-key.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { StatusListClaims } from '../../domain/status-lists/token.ts';
import { prepareStatusListCwt } from '../../domain/status-lists/token-cwt.ts';
import { needs } from '../needs.ts';
import { Kms } from '../ports/kms.ts';
import { TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';
import { etagOf, type PublishedStatusList, StatusPublisher } from './status-publisher.ts';

export type PublishedStatusCwt = Omit<PublishedStatusList, 'jwt'> & { readonly cwt: Buffer };

/** The CWT form of status lists (Token Status List section 5.2), created on demand for readers that require it. */
export class StatusCwtPublisher extends needs({ ...TRANSACTION_PORTS, statusPublisher: StatusPublisher, kms: Kms }) {
  /** Cached with the JWT of the same content, as long as that is published. */
  readonly #tokens = new WeakMap<PublishedStatusList, Promise<PublishedStatusCwt>>();

  /** @throws Failure `not_found`. */
  async publish(tenantId: TenantId, listId: string): Promise<PublishedStatusCwt> {
    const published = await this.ports.statusPublisher.publish(tenantId, listId);
    const cached = this.#tokens.get(published);
    if (cached !== undefined) return cached;
    const token = this.#sign(tenantId, published);
    this.#tokens.set(published, token);
    token.catch(() => this.#tokens.delete(published));
    return token;
  }

  async #sign(tenantId: TenantId, { jwt, expiresAt }: PublishedStatusList): Promise<PublishedStatusCwt> {
    const { tenantConfigurations, kms, clock } = this.ports;
    const { header, payload } = parseCompactJws(jwt.toString()) ?? {};
    const chains = await (await tenantConfigurations.readStored(tenantId))?.keyChains();
    if (chains === undefined || payload === undefined) throw new Failure('not_found', 'unknown status list');
    const { x5c } = header ?? {};
    const chain = sameSigner(chains, Array.isArray(x5c) ? x5c[0] : undefined, clock.now());
    const { key } = chain.active;
    const { toSign, seal } = prepareStatusListCwt({
      claims: payload as unknown as StatusListClaims,
      algorithm: key.handle.algorithm,
      chain: signingChain(chain),
    });
    const cwt = seal(Buffer.from(await kms.sign(signingKey(chain.tenantId, key), toSign)));
    return { cwt, etag: etagOf(cwt), expiresAt };
  }
}

/** The signer of the JWT form, with its current key; the default signer if it was removed. */
function sameSigner(chains: readonly KeyChain[], leaf: unknown, now: Date): KeyChain {
  const sameChain = chains.find((chain) => !isCompromised(chain) && leavesOf(chain).some(({ certificates }) => certificates[0] === leaf));
  return sameChain ?? selectKeyChain(chains, 'statusList', now);
}
