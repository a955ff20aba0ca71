import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import { mdocElements } from '../../domain/issuance/mdoc-claims.ts';
import { fingerprintOf, type SubjectClaims, subjectText } from '../../domain/issuance/subject-claims.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { needs } from '../needs.ts';
import { Random } from '../ports/random.ts';
import { Store } from '../ports/store.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

const KEY_BYTES = 32;

/**
 * Pseudonyms of persons: a hash with a random, sealed key of the tenant. The database alone neither allows guessing values nor comparing
 * two tenants.
 */
export class SubjectFingerprints extends needs({ store: Store, random: Random }) {
  /** @returns undefined if the configuration does not define the subject of its credentials. */
  async ofIssued(
    tenant: TenantConfiguration,
    { config, subjectClaims }: CredentialConfiguration,
    claims: JsonObject,
  ): Promise<string | undefined> {
    if (subjectClaims === null || subjectClaims === undefined) return undefined;
    const claimsByName = config.format === 'mso_mdoc' ? mdocElements(config, claims) : claims;
    const text = subjectText(claimsByName, subjectClaims);
    // Claims without these properties are rejected earlier.
    if (text === undefined) throw new Error('the claims do not identify the subject of the credential');
    return fingerprintOf(await this.#key(tenant), text);
  }

  /**
   * Fingerprints of the described person, one per way of identification.
   * @param identifications `isFlat` accepts claims of an mdoc without their namespace.
   */
  async ofDescribed(
    tenant: TenantConfiguration,
    claims: JsonObject,
    identifications: readonly { readonly paths: SubjectClaims; readonly isFlat: boolean }[],
  ): Promise<readonly string[]> {
    const texts = identifications.flatMap(({ paths, isFlat }) => subjectText(claims, paths, isFlat) ?? []);
    if (texts.length === 0) return [];
    const key = await this.#key(tenant);
    return [...new Set(texts)].map((text) => fingerprintOf(key, text));
  }

  #key(tenant: TenantConfiguration): Promise<Buffer> {
    const { store, random } = this.ports;
    return tenant.derive('subjects/key', () => store.maintenance.subjectKey(tenant.tenantId, random.bytes(KEY_BYTES)));
  }
}
