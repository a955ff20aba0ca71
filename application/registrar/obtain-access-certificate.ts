import { createPublicKey } from 'node:crypto';
import { object, z } from 'zod';
import { HOST } from '../../domain/keys/host-name.ts';
import type { KeyChain, KeyLeaf } from '../../domain/keys/key-chain.ts';
import { replaceActiveLeaf } from '../../domain/keys/rotation.ts';
import { isSameHandle } from '../../domain/keys/signing-key.ts';
import type { RelyingParty } from '../../domain/registrar/registrar-api.ts';
import { defined } from '../../domain/shared/defined.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import type { PublicJwk } from '../../domain/shared/jwk.ts';
import type { TenantCaller } from '../caller.ts';
import { assertNoAnchor } from '../keys/key-references.ts';
import { parseCertificates } from '../keys/parse-certificates.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { Registrar } from '../ports/registrar.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Store } from '../ports/store.ts';
import { changeTenantExclusively } from '../transactions/tenant-changes.ts';
import { firstOf } from './obtain-from-registrar.ts';
import { getAccount } from './registrar-account.ts';
import { registrarFailure } from './registrar-failures.ts';

export const AccessCertificateOrder = object({
  keyChainId: z.string().min(1).max(128).describe('A key chain with only the usage `access`'),
  dns: z
    .array(z.string().max(253).regex(HOST, 'a host name'))
    .min(1)
    .max(20)
    .optional()
    .describe('Host names for the certificate. Default: that of `PUBLIC_URL`'),
  rpId: z.string().min(1).max(200).optional().describe('Relying party of the account. Default: the first'),
}).meta({ id: 'AccessCertificateOrder' });
export type AccessCertificateOrder = z.infer<typeof AccessCertificateOrder>;

export type ObtainedAccessCertificate = { readonly id: string; readonly relyingPartyId: string; readonly chain: KeyChain };

export class ObtainAccessCertificate extends needs({ store: Store, clock: Clock, registrar: Registrar, settings: ServiceSettings }) {
  /**
   * @throws Failure `invalid_input` for an unsuitable key chain, `conflict` without a registrar,
   *   `unavailable` when it does not answer, or answers with an unusable certificate.
   */
  async execute(caller: TenantCaller, order: AccessCertificateOrder): Promise<ObtainedAccessCertificate> {
    const { registrar, settings } = this.ports;
    const { key } = getAccessChain(await caller.tenant.keyChains(), order.keyChainId).active;
    const account = await getAccount(caller.tenant);
    try {
      const rpId = pickRelyingParty(await registrar.relyingParties(account), order.rpId).id;
      const dns = order.dns ?? [new URL(settings.publicUrl).hostname];
      const request = { publicKey: publicKeyPem(key.publicJwk), dns, rpId };
      const issued = await registrar.issueAccessCertificate(account, request);
      const leaf: KeyLeaf = { key, ...this.#read(issued.crt, key.publicJwk) };
      return { id: issued.id, relyingPartyId: rpId, chain: await this.#adopt(caller, order.keyChainId, leaf) };
    } catch (error) {
      throw registrarFailure(error, 'keyChainId');
    }
  }

  /** An unusable certificate is a fault of the registrar and not of the caller. */
  #read(pem: string, key: PublicJwk) {
    try {
      return parseCertificates(pem, { key, usages: ['access'] }, this.ports.clock.now());
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      const message = `The registrar answered with a certificate that cannot be used: ${error.message}.`;
      throw new Failure('unavailable', message, { cause: error });
    }
  }

  #adopt(caller: TenantCaller, id: string, leaf: KeyLeaf): Promise<KeyChain> {
    const { store, clock } = this.ports;
    return changeTenantExclusively(store, caller, async (repositories) => {
      const storedChain = getAccessChain(await repositories.keyChains.list(), id);
      if (!isSameHandle(storedChain.active.key.handle, leaf.key.handle)) {
        throw new Failure('conflict', 'the key chain got another key concurrently; try again');
      }
      await assertNoAnchor(repositories, id);
      const chain = replaceActiveLeaf(storedChain, 'upload', leaf, clock.now());
      await repositories.keyChains.put(chain);
      return chain;
    });
  }
}

/** The key chain must have no other usage, since everything it signs would carry the certificate of the relying party. */
function getAccessChain(chains: readonly KeyChain[], id: string): KeyChain {
  const chain = chains.find((candidate) => candidate.id === id);
  if (chain === undefined) throw invalidInput('keyChainId', `There is no key chain "${id}".`);
  if (chain.usages.some((usage) => usage !== 'access')) {
    const message = `The key chain "${id}" also has other usages than "access". Create one with only this usage.`;
    throw invalidInput('keyChainId', message);
  }
  return chain;
}

function pickRelyingParty(parties: readonly RelyingParty[], requestedId: string | undefined): RelyingParty {
  if (requestedId === undefined) return firstOf(parties, 'rpId');
  const party = parties.find(({ id }) => id === requestedId);
  if (party === undefined) throw invalidInput('rpId', 'The account has no relying party with this id.');
  return party;
}

/** SubjectPublicKeyInfo (RFC 7468 section 13). */
function publicKeyPem({ kty, crv, x, y }: PublicJwk): string {
  const key = createPublicKey({ key: { kty, crv, x, ...defined({ y }) }, format: 'jwk' });
  return key.export({ type: 'spki', format: 'pem' }) as string;
}
