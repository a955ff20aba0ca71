import { describeCertificateRequest } from '../../domain/audit/describe-change.ts';
import { writePem } from '../../domain/formats/der/pem.ts';
import { subjectNames } from '../../domain/keys/certificate-subject.ts';
import type { KeyChain, KeyLeaf } from '../../domain/keys/key-chain.ts';
import type { CertificateCreation, CertificateSigningRequest } from '../../domain/keys/key-chain-input.ts';
import { assertAuthorityPurpose, assertMayChangeKeys } from '../../domain/keys/key-chain-rights.ts';
import { isSameHandle, signingKey } from '../../domain/keys/signing-key.ts';
import { defined } from '../../domain/shared/defined.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { CertificateAuthority } from '../ports/certificate-authority.ts';
import { Clock } from '../ports/clock.ts';
import { Random } from '../ports/random.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Store } from '../ports/store.ts';
import { changeTenant, changeTenantExclusively } from '../transactions/tenant-changes.ts';
import { certifyLeaf, leafOf } from './certify-leaf.ts';
import { assertNotCompromised } from './compromised-key.ts';
import { assertNotLast, assertUnused } from './key-references.ts';
import { parseCertificates } from './parse-certificates.ts';
import { destroyRetiredKeys, KEY_DESTRUCTION_PORTS } from './retired-keys.ts';
import { chainsOfKey, keyIdOf } from './shared-key.ts';

/** Certificates of the tenant, optionally of one key or one by its id; `all` shows which chains share a key. */
export class FindCertificates extends needs({ store: Store }) {
  /** @throws Failure `not_found` for an unknown `certId`; an unknown `keyId` gives an empty result. */
  async execute(
    caller: TenantCaller,
    filter: { readonly keyId?: string | undefined; readonly certId?: string } = {},
  ): Promise<{ readonly found: readonly KeyChain[]; readonly all: readonly KeyChain[] }> {
    const allChains = await this.ports.store.forTenant(caller.tenantId, ({ keyChains }) => keyChains.list());
    if (filter.certId !== undefined) {
      const matches = allChains.filter((chain) => chain.id === filter.certId);
      if (matches.length === 0) throw new Failure('not_found', 'there is no certificate with this id');
      return { found: matches, all: allChains };
    }
    return { found: filter.keyId === undefined ? allChains : chainsOfKey(filter.keyId, allChains), all: allChains };
  }
}

/**
 * Adds a certificate to a key: one that was obtained elsewhere, or a leaf of the key's internal CA. The result is
 * another key chain with the same key.
 */
export class CreateCertificate extends needs({
  store: Store,
  certificateAuthority: CertificateAuthority,
  random: Random,
  clock: Clock,
  settings: ServiceSettings,
}) {
  /**
   * @throws Failure `not_found` for an unknown key, `invalid_input` for a certificate chain of another key, `conflict` when the
   *   key was rotated or lost its internal CA meanwhile.
   */
  async execute(
    caller: TenantCaller,
    creation: CertificateCreation,
  ): Promise<{ readonly chain: KeyChain; readonly all: readonly KeyChain[] }> {
    const { store, random, clock } = this.ports;
    const knownChains = await store.forTenant(caller.tenantId, ({ keyChains }) => keyChains.list());
    const holders = holdersOf(creation.keyId, knownChains);
    const holder = holders.find((chain) => chain.root !== undefined) ?? holders[0];
    assertMayCertify(caller, creation, holders, knownChains);
    assertNotCompromised(holder, knownChains);

    const { crt } = creation;
    const active =
      crt === undefined
        ? await this.#certify(caller, holder, creation)
        : {
            key: holder.active.key,
            ...parseCertificates(crt, { key: holder.active.key.publicJwk, usages: creation.certUsageTypes }, clock.now()),
          };
    const now = clock.now();
    const { root, kmsProvider, rotationIntervalDays, certValidityDays } = holder;
    const createdChain: KeyChain = {
      id: creation.id ?? random.token(),
      tenantId: caller.tenantId,
      ...defined({ description: creation.description ?? undefined }),
      usages: [...new Set(creation.certUsageTypes)],
      kmsProvider,
      ...(crt === undefined && root !== undefined && { root }),
      active,
      rotationEnabled: false,
      rotationIntervalDays,
      certValidityDays,
      createdAt: now,
      updatedAt: now,
    };
    return changeTenantExclusively(store, caller, async ({ keyChains }) => {
      const currentChains = await keyChains.list();
      const chain = withCurrentRoot(createdChain, holdersOf(creation.keyId, currentChains));
      assertMayCertify(caller, creation, holdersOf(creation.keyId, currentChains), currentChains);
      await keyChains.add(chain);
      return { chain, all: [...currentChains, chain] };
    });
  }

  async #certify(caller: TenantCaller, holder: KeyChain, { subjectName, certUsageTypes: usages }: CertificateCreation): Promise<KeyLeaf> {
    const { root } = holder;
    if (root === undefined) throw invalidInput('crt', 'this key has no internal CA; send its certificates');
    const tenant = await caller.tenant.tenant();
    return certifyLeaf(this.ports.certificateAuthority, {
      ...leafOf(this.ports, holder, root, tenant),
      usages,
      subjectName: subjectName ?? tenant.name,
    });
  }
}

/** @throws Failure `forbidden`; `invalid_input` if the authority of the key is for other usages. */
function assertMayCertify(
  { roles, tenant }: TenantCaller,
  { crt, certUsageTypes: usages }: CertificateCreation,
  holders: readonly KeyChain[],
  chains: readonly KeyChain[],
): void {
  assertMayChangeKeys(roles, [...holders, { usages }], chains);
  const root = holders.find((chain) => chain.root !== undefined)?.root;
  if (crt !== undefined || root === undefined || holders.every((holder) => holder.usages.length === 0)) return;
  assertAuthorityPurpose(usages, root, { all: chains, path: 'certUsageTypes', profile: tenant.profile });
}

/** @throws Failure `not_found`. */
function holdersOf(keyId: string, chains: readonly KeyChain[]): readonly [KeyChain, ...KeyChain[]] {
  const [firstHolder, ...otherHolders] = chainsOfKey(keyId, chains);
  if (firstHolder === undefined) throw new Failure('not_found', 'there is no key with this id');
  return [firstHolder, ...otherHolders];
}

/**
 * Checks that the key and its internal CA still exist, since creating a certificate takes a while, and updates the location of the CA's
 * key.
 * @throws Failure `conflict`.
 */
function withCurrentRoot(createdChain: KeyChain, holders: readonly KeyChain[]): KeyChain {
  const { active, root } = createdChain;
  const holder = holders.find(
    (candidate) =>
      isSameHandle(candidate.active.key.handle, active.key.handle) &&
      (root === undefined || candidate.root?.certificate === root.certificate),
  );
  if (holder !== undefined) return root === undefined || holder.root === undefined ? createdChain : { ...createdChain, root: holder.root };
  throw new Failure('conflict', 'the key was changed or rotated concurrently; try again');
}

/** Creates a certificate signing request for a key of the tenant, for an external CA. */
export class RequestCertificate extends needs({ store: Store, certificateAuthority: CertificateAuthority, settings: ServiceSettings }) {
  /**
   * Signs a request with the active key and records it in the audit log.
   * @returns PKCS#10 (RFC 2986) as PEM. @throws Failure `not_found`.
   */
  async execute(caller: TenantCaller, id: string, signingRequest: CertificateSigningRequest): Promise<string> {
    const { store, certificateAuthority, settings } = this.ports;
    const { chain, all: allChains } = await store.forTenant(caller.tenantId, async ({ keyChains }) => ({
      chain: await keyChains.get(id),
      all: await keyChains.list(),
    }));
    assertMayChangeKeys(caller.roles, [chain], allChains);
    assertNotCompromised(chain, allChains);
    const { active } = chain;
    const currentNames = subjectNames(active.certificates[0] ?? '');
    const country = signingRequest.country ?? currentNames.country;
    const organization = signingRequest.organization ?? currentNames.organization;
    const request = await certificateAuthority.request(
      {
        subject: {
          commonName: signingRequest.subjectName ?? currentNames.commonName ?? (await caller.tenant.tenant()).name,
          ...defined({ country, organization }),
        },
        publicJwk: active.key.publicJwk,
        dnsNames: signingRequest.dnsNames ?? [new URL(settings.publicUrl).hostname],
      },
      signingKey(caller.tenantId, active.key),
    );
    await changeTenant(store, caller, async ({ audit }) => audit.note(describeCertificateRequest(id, request)));
    return writePem('CERTIFICATE REQUEST', request);
  }
}

/** Number of keys that are destroyed before the response; a job destroys the others. */
const MAX_DESTROYED = 20;

export class DeleteKey extends needs({ ...KEY_DESTRUCTION_PORTS, clock: Clock }) {
  /** @throws Failure `not_found`; `conflict` when one of the certificates is in use, and then none is removed. */
  async execute(caller: TenantCaller, keyId: string): Promise<void> {
    const { store, clock } = this.ports;
    await changeTenantExclusively(store, caller, async (repositories) => {
      const allChains = await repositories.keyChains.list();
      const chains = chainsOfKey(keyId, allChains).filter((chain) => keyIdOf(chain, allChains) === keyId);
      if (chains.length === 0) throw new Failure('not_found', 'there is no key with this id');
      assertMayChangeKeys(caller.roles, chains, allChains);
      for (const chain of chains) {
        await assertUnused(repositories, chain.id);
        await assertNotLast(repositories, chain, chain.usages, clock.now());
        await repositories.keyChains.remove(chain.id);
      }
    });
    await destroyRetiredKeys(this.ports, MAX_DESTROYED, caller.tenantId);
  }
}
