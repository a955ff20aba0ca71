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
 * Names persons without saying who they are: by a hash under a key of the tenant, which is random and sealed. Whoever has the
 * database alone can neither try values nor compare two tenants.
 */
export class SubjectFingerprints extends needs({ store: Store, random: Random }) {
  /** @returns undefined where the configuration does not say whom its credentials are about. */
  async ofIssued(
    configured: TenantConfiguration,
    { config, subjectClaims }: CredentialConfiguration,
    claims: JsonObject,
  ): Promise<string | undefined> {
    if (subjectClaims === null || subjectClaims === undefined) return undefined;
    const named = config.format === 'mso_mdoc' ? mdocElements(config, claims) : claims;
    const text = subjectText(named, subjectClaims);
    // Claims without them are refused before.
    if (text === undefined) throw new Error('the claims do not say whom the credential is about');
    return fingerprintOf(await this.#key(configured), text);
  }

  /**
   * Those of the person that these claims describe, by each of several ways to identify somebody.
   * @param ways `isFlat` where claims of an mdoc may stand without their namespace.
   */
  async ofDescribed(
    configured: TenantConfiguration,
    claims: JsonObject,
    ways: readonly { readonly paths: SubjectClaims; readonly isFlat: boolean }[],
  ): Promise<readonly string[]> {
    const texts = ways.flatMap(({ paths, isFlat }) => subjectText(claims, paths, isFlat) ?? []);
    if (texts.length === 0) return [];
    const key = await this.#key(configured);
    return [...new Set(texts)].map((text) => fingerprintOf(key, text));
  }

  #key(configured: TenantConfiguration): Promise<Buffer> {
    const { store, random } = this.ports;
    return configured.derive('subjects/key', () => store.maintenance.subjectKey(configured.tenantId, random.bytes(KEY_BYTES)));
  }
}
