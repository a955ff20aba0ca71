import { isDeepStrictEqual } from 'node:util';
import type { EntityManager } from '@mikro-orm/core';
import type { DocumentRepositories, TrustListRepository } from '../../../application/ports/repositories.ts';
import { defaultIssuance } from '../../../domain/issuance/issuance-configuration.ts';
import { findIssuanceProblems } from '../../../domain/issuance/issuance-findings.ts';
import { findMissingKeyProblems } from '../../../domain/keys/key-chain-findings.ts';
import { DOCUMENTS, type DocumentKind, resourceOf } from '../../../domain/resources.ts';
import { type FieldError, invalidFields } from '../../../domain/shared/failure.ts';
import { assertNoProfileViolations, type Profile, profileViolations } from '../../../domain/shared/finding.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { TenantRow } from '../rows/administration.row.ts';

/**
 * Checks every document that is written against the profile of the tenant. All writers pass here with the tenant's row locked, so a
 * concurrent change of the profile waits for them.
 */
export class ProfileGuard {
  readonly #em: EntityManager;
  readonly #tenantId: TenantId;

  constructor(em: EntityManager, tenantId: TenantId) {
    this.#em = em;
    this.#tenantId = tenantId;
  }

  /**
   * Checks the existing configuration of a tenant that is about to get a profile.
   * @param trustLists of the tenant, which have tables of their own.
   * @throws Failure `conflict` that lists everything that contradicts the profile.
   */
  async assertAllFit(profile: Profile, documents: DocumentRepositories, trustLists: Pick<TrustListRepository, 'list'>): Promise<void> {
    const faults: FieldError[] = [];
    const repositories = [
      ...DOCUMENTS.map(({ kind, repository }) => ({ kind, resources: documents[repository] })),
      { kind: 'trust-list' as const, resources: trustLists },
    ];
    for (const { kind, resources } of repositories) {
      const { findings } = resourceOf(kind);
      if (findings === undefined) continue;
      for (const document of await resources.list()) {
        for (const { path, message } of profileViolations(findings(document as never, profile), profile)) {
          faults.push({ path: `${kind}/${document.id}.${path}`, message });
        }
      }
    }
    faults.push(...findMissingKeyProblems(await documents.keyChains.list(), profile));
    const issues = (await documents.credentialConfigurations.list()).length > 0;
    if (issues && (await documents.issuanceConfiguration.find('default')) === undefined) faults.push(...missingIssuanceSettings(profile));
    assertNoProfileViolations(profile, faults);
  }

  /**
   * A stored property that does not change may contradict the profile: an earlier release accepted it, and keys, for example, must remain
   * rotatable.
   * @param readStored reads the document that is replaced, if there is one.
   * @throws Failure `invalid_input`.
   */
  async assertFits(
    kind: DocumentKind,
    document: object,
    readStored: () => Promise<object | undefined> = async () => undefined,
  ): Promise<void> {
    const { findings } = resourceOf(kind);
    if (findings === undefined) return;
    const row = await this.#em.findOneOrFail(TenantRow, { id: this.#tenantId }, { fields: ['profile'], disableIdentityMap: true });
    const profile = (row.profile ?? null) as Profile | null;
    if (profile === null) return;
    const faults = profileViolations(findings(document as never, profile), profile);
    const storedDocument = faults.length === 0 ? undefined : await readStored();
    const storedFaults = storedDocument === undefined ? [] : profileViolations(findings(storedDocument as never, profile), profile);
    const newFaults = faults.filter(
      ({ path, message }) =>
        !storedFaults.some((fault) => fault.path === path && fault.message === message) ||
        !isDeepStrictEqual(propertyAt(document, path), propertyAt(storedDocument, path)),
    );
    if (newFaults.length > 0) throw invalidFields(newFaults);
  }
}

/** Returns the whole top-level property that `path` points into. */
function propertyAt(document: object | undefined, path: string): unknown {
  const [property = ''] = path.split('.', 1);
  return (document as Readonly<Record<string, unknown>> | undefined)?.[property];
}

/** Settings that the profile requires of an issuer and that are not configured: credentials would be issued without them. */
function missingIssuanceSettings(profile: Profile): readonly FieldError[] {
  const faults = profileViolations(findIssuanceProblems(defaultIssuance('-'), profile), profile);
  return faults.map(({ path, message }) => ({
    path: `issuance-configuration/default.${path}`,
    message: `${message}; with POST /issuer/config`,
  }));
}
