import { describeCertificateRequest } from '../../domain/audit/describe-change.ts';
import { writePem } from '../../domain/formats/der/pem.ts';
import { subjectNames } from '../../domain/keys/certificate-subject.ts';
import type { KeyChain, KeyLeaf } from '../../domain/keys/key-chain.ts';
import type { CertificateCreation, CertificateSigningRequest } from '../../domain/keys/key-chain-input.ts';
import { assertCertifiedFor, assertMayTouch } from '../../domain/keys/key-chain-rights.ts';
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
import { changeOwn, changeOwnAlone } from '../transactions/own-changes.ts';
import { certifyLeaf, leafOf } from './certify-leaf.ts';
import { assertNotCompromised } from './compromised-key.ts';
import { assertNotLast, assertUnused } from './key-references.ts';
import { parseCertificates } from './parse-certificates.ts';
import { DESTROYING, destroyRetiredKeys } from './retired-keys.ts';
import { chainsOfKey, keyIdOf } from './shared-key.ts';

/** Certificates of the tenant, optionally of one key or one by its id; `all` tells who shares a key with whom. */
export class FindCertificates extends needs({ store: Store }) {
  /** @throws Failure `not_found` for an unknown `certId`; an unknown `keyId` finds nothing. */
  async execute(
    caller: TenantCaller,
    wanted: { readonly keyId?: string | undefined; readonly certId?: string } = {},
  ): Promise<{ readonly found: readonly KeyChain[]; readonly all: readonly KeyChain[] }> {
    const all = await this.ports.store.forTenant(caller.tenantId, ({ keyChains }) => keyChains.list());
    if (wanted.certId !== undefined) {
      const found = all.filter((chain) => chain.id === wanted.certId);
      if (found.length === 0) throw new Failure('not_found', 'there is no certificate of this id');
      return { found, all };
    }
    return { found: wanted.keyId === undefined ? all : chainsOfKey(wanted.keyId, all), all };
  }
}

/**
 * Gives a key another certificate: one that was obtained elsewhere, or a leaf of the key's internal CA. It becomes a
 * key chain of its own over the same key.
 */
export class CreateCertificate extends needs({
  store: Store,
  certificateAuthority: CertificateAuthority,
  random: Random,
  clock: Clock,
  settings: ServiceSettings,
}) {
  /**
   * @throws Failure `not_found` for an unknown key, `invalid_input` for a chain that is not for it, `conflict` when the
   *   key was rotated or lost its internal CA meanwhile.
   */
  async execute(
    caller: TenantCaller,
    wanted: CertificateCreation,
  ): Promise<{ readonly chain: KeyChain; readonly all: readonly KeyChain[] }> {
    const { store, random, clock } = this.ports;
    const known = await store.forTenant(caller.tenantId, ({ keyChains }) => keyChains.list());
    const holders = holdersOf(wanted.keyId, known);
    const holder = holders.find((chain) => chain.root !== undefined) ?? holders[0];
    assertMayCertify(caller, wanted, holders, known);
    assertNotCompromised(holder, known);

    const { crt } = wanted;
    const active =
      crt === undefined
        ? await this.#certify(caller, holder, wanted)
        : {
            key: holder.active.key,
            ...parseCertificates(crt, { key: holder.active.key.publicJwk, usages: wanted.certUsageTypes }, clock.now()),
          };
    const now = clock.now();
    const { root, kmsProvider, rotationIntervalDays, certValidityDays } = holder;
    const made: KeyChain = {
      id: wanted.id ?? random.token(),
      tenantId: caller.tenantId,
      ...defined({ description: wanted.description ?? undefined }),
      usages: [...new Set(wanted.certUsageTypes)],
      kmsProvider,
      ...(crt === undefined && root !== undefined && { root }),
      active,
      rotationEnabled: false,
      rotationIntervalDays,
      certValidityDays,
      createdAt: now,
      updatedAt: now,
    };
    return changeOwnAlone(store, caller, async ({ keyChains }) => {
      const present = await keyChains.list();
      const chain = withPresentKeys(made, holdersOf(wanted.keyId, present));
      assertMayCertify(caller, wanted, holdersOf(wanted.keyId, present), present);
      await keyChains.add(chain);
      return { chain, all: [...present, chain] };
    });
  }

  async #certify(caller: TenantCaller, holder: KeyChain, { subjectName, certUsageTypes: usages }: CertificateCreation): Promise<KeyLeaf> {
    const { root } = holder;
    if (root === undefined) throw invalidInput('crt', 'this key has no internal authority; give its certificates');
    const tenant = await caller.configured.tenant();
    return certifyLeaf(this.ports.certificateAuthority, {
      ...leafOf(this.ports, holder, root, tenant),
      usages,
      subjectName: subjectName ?? tenant.name,
    });
  }
}

/** @throws Failure `forbidden`; `invalid_input` where the authority of the key is for other things. */
function assertMayCertify(
  { roles, configured }: TenantCaller,
  { crt, certUsageTypes: usages }: CertificateCreation,
  holders: readonly KeyChain[],
  all: readonly KeyChain[],
): void {
  assertMayTouch(roles, [...holders, { usages }], all);
  const root = holders.find((chain) => chain.root !== undefined)?.root;
  if (crt !== undefined || root === undefined || holders.every((holder) => holder.usages.length === 0)) return;
  assertCertifiedFor(usages, root, { all, path: 'certUsageTypes', profile: configured.profile });
}

/** @throws Failure `not_found`. */
function holdersOf(keyId: string, all: readonly KeyChain[]): readonly [KeyChain, ...KeyChain[]] {
  const [first, ...others] = chainsOfKey(keyId, all);
  if (first === undefined) throw new Failure('not_found', 'there is no key of this id');
  return [first, ...others];
}

/**
 * Making a certificate takes a while: a key or an internal CA that went meanwhile must not come back with it, nor the place
 * where the key of that CA was.
 * @throws Failure `conflict`.
 */
function withPresentKeys(made: KeyChain, holders: readonly KeyChain[]): KeyChain {
  const { active, root } = made;
  const holder = holders.find(
    (other) =>
      isSameHandle(other.active.key.handle, active.key.handle) && (root === undefined || other.root?.certificate === root.certificate),
  );
  if (holder !== undefined) return root === undefined || holder.root === undefined ? made : { ...made, root: holder.root };
  throw new Failure('conflict', 'the key was changed or rotated meanwhile; try again');
}

/** Writes what an authority elsewhere wants to see before it certifies a key of the tenant. */
export class RequestCertificate extends needs({ store: Store, certificateAuthority: CertificateAuthority, settings: ServiceSettings }) {
  /**
   * Signs a request with the active key and records it in the audit log.
   * @returns PKCS#10 (RFC 2986) as PEM. @throws Failure `not_found`.
   */
  async execute(caller: TenantCaller, id: string, wanted: CertificateSigningRequest): Promise<string> {
    const { store, certificateAuthority, settings } = this.ports;
    const { chain, all } = await store.forTenant(caller.tenantId, async ({ keyChains }) => ({
      chain: await keyChains.get(id),
      all: await keyChains.list(),
    }));
    assertMayTouch(caller.roles, [chain], all);
    assertNotCompromised(chain, all);
    const { active } = chain;
    const known = subjectNames(active.certificates[0] ?? '');
    const country = wanted.country ?? known.country;
    const organization = wanted.organization ?? known.organization;
    const request = await certificateAuthority.request(
      {
        subject: {
          commonName: wanted.subjectName ?? known.commonName ?? (await caller.configured.tenant()).name,
          ...defined({ country, organization }),
        },
        publicJwk: active.key.publicJwk,
        dnsNames: wanted.dnsNames ?? [new URL(settings.publicUrl).hostname],
      },
      signingKey(caller.tenantId, active.key),
    );
    await changeOwn(store, caller, async ({ audit }) => audit.note(describeCertificateRequest(id, request)));
    return writePem('CERTIFICATE REQUEST', request);
  }
}

/** Keys that a removal destroys before it answers; the job takes the rest. */
const MAX_DESTROYED = 20;

/** Removes a key with all of its certificates. */
export class DeleteKey extends needs({ ...DESTROYING, clock: Clock }) {
  /** @throws Failure `not_found`; `conflict` when something needs one of the certificates, and then all of them stay. */
  async execute(caller: TenantCaller, keyId: string): Promise<void> {
    const { store, clock } = this.ports;
    await changeOwnAlone(store, caller, async (repositories) => {
      const all = await repositories.keyChains.list();
      const chains = chainsOfKey(keyId, all).filter((chain) => keyIdOf(chain, all) === keyId);
      if (chains.length === 0) throw new Failure('not_found', 'there is no key of this id');
      assertMayTouch(caller.roles, chains, all);
      for (const chain of chains) {
        await assertUnused(repositories, chain.id);
        await assertNotLast(repositories, chain, chain.usages, clock.now());
        await repositories.keyChains.remove(chain.id);
      }
    });
    await destroyRetiredKeys(this.ports, MAX_DESTROYED, caller.tenantId);
  }
}
