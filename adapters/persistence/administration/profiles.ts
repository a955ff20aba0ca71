import { isDeepStrictEqual } from 'node:util';
import type { EntityManager } from '@mikro-orm/core';
import type { DocumentRepositories, TrustListRepository } from '../../../application/ports/repositories.ts';
import { defaultIssuance } from '../../../domain/issuance/issuance-configuration.ts';
import { findIssuanceProblems } from '../../../domain/issuance/issuance-findings.ts';
import { missingKeys } from '../../../domain/keys/key-chain-findings.ts';
import { DOCUMENTS, type DocumentKind, resourceOf } from '../../../domain/resources.ts';
import { type FieldError, invalidFields } from '../../../domain/shared/failure.ts';
import { assertNothingContradicts, contradictions, type Profile } from '../../../domain/shared/finding.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { TenantRow } from '../rows/administration.row.ts';

/**
 * Looks at every document that is written whether the tenant's profile allows it. It stands where all writers pass, and
 * every writer holds the row of its tenant by then, so a profile that is taken on at the same moment waits for it.
 */
export class ProfileKeeper {
  readonly #em: EntityManager;
  readonly #tenantId: TenantId;

  constructor(em: EntityManager, tenantId: TenantId) {
    this.#em = em;
    this.#tenantId = tenantId;
  }

  /**
   * For a tenant that takes a profile on: what it has configured before is held against it.
   * @param documents of the tenant.
   * @param trustLists of the tenant, which have tables of their own.
   * @throws Failure `conflict` that names all that contradicts it.
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
        for (const { path, message } of contradictions(findings(document as never, profile), profile)) {
          faults.push({ path: `${kind}/${document.id}.${path}`, message });
        }
      }
    }
    faults.push(...missingKeys(await documents.keyChains.list(), profile));
    const issues = (await documents.credentialConfigurations.list()).length > 0;
    if (issues && (await documents.issuanceConfiguration.find('default')) === undefined) faults.push(...unwritten(profile));
    assertNothingContradicts(profile, faults);
  }

  /**
   * A property that is stored already and stays as it is may contradict the profile: an earlier release accepted it, and keys, for
   * example, have to be rotated all the same.
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
    const faults = contradictions(findings(document as never, profile), profile);
    const stored = faults.length === 0 ? undefined : await readStored();
    const former = stored === undefined ? [] : contradictions(findings(stored as never, profile), profile);
    const written = faults.filter(
      ({ path, message }) =>
        !former.some((fault) => fault.path === path && fault.message === message) ||
        !isDeepStrictEqual(propertyAt(document, path), propertyAt(stored, path)),
    );
    if (written.length > 0) throw invalidFields(written);
  }
}

/** The whole property, of which `path` may name a part. */
function propertyAt(document: object | undefined, path: string): unknown {
  const [property = ''] = path.split('.', 1);
  return (document as Readonly<Record<string, unknown>> | undefined)?.[property];
}

/** What a profile demands of an issuer that nobody has said yet: credentials would be issued without. */
function unwritten(profile: Profile): readonly FieldError[] {
  const faults = contradictions(findIssuanceProblems(defaultIssuance('-'), profile), profile);
  return faults.map(({ path, message }) => ({
    path: `issuance-configuration/default.${path}`,
    message: `${message}; with POST /issuer/config`,
  }));
}
