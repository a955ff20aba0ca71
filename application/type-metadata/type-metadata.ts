import { LRUCache } from 'lru-cache';
import type { DisclosedObject } from '../../domain/formats/sd-jwt/disclosures.ts';
import { typeAddress } from '../../domain/issuance/metadata.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { Refusal } from '../../domain/shared/refusal.ts';
import { parseWebAddress } from '../../domain/shared/web-address.ts';
import { findTypeProblem, matchesIntegrity, type PresentedTypeClaim, parseType } from '../../domain/verification/type-conformance.ts';
import { needs } from '../needs.ts';
import { Remote } from '../ports/remote.ts';
import { boundedBytes } from '../tenant-cache/cache-memory.ts';
import { SingleFlight } from '../tenant-cache/single-flight.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { download } from '../trust-lists/fetched-lists.ts';
import { hostedType } from './hosted-type.ts';

const MAX_DOCUMENT_BYTES = 256 * 1024;
const MAX_CACHE_BYTES = 8 * 1024 * 1024;
/** Limit of the chain of `extends`. */
const MAX_TYPES = 5;

const unavailable = (reason: string) => new Refusal('type_metadata_unavailable', reason);

/** Validates credentials against the metadata of their types (SD-JWT VC section 5). */
export class TypeMetadata extends needs({ remote: Remote }) {
  /** Cached by tenant, type and hash, which determine the content. */
  readonly #documents = new LRUCache<string, string>(boundedBytes(MAX_CACHE_BYTES));
  readonly #fetching = new SingleFlight<string>();

  /**
   * @param visible the signed payload with its digests, which every presentation contains.
   * @throws Refusal `type_metadata_unavailable`, `type_metadata_invalid`, `type_metadata_broken`.
   */
  async verify(tenant: TenantConfiguration, claims: DisclosedObject, visible: JsonObject): Promise<void> {
    const { vct, 'vct#integrity': integrity } = visible;
    if (typeof vct !== 'string') throw unavailable('the credential names no type');
    const rules = await this.#rules(tenant, vct, typeof integrity === 'string' ? integrity : undefined);
    const fault = findTypeProblem(rules, claims, visible);
    if (fault !== undefined) throw new Refusal('type_metadata_broken', fault);
  }

  async #rules(tenant: TenantConfiguration, vct: string, integrity: string | undefined): Promise<readonly PresentedTypeClaim[]> {
    const rules: PresentedTypeClaim[] = [];
    let nextType: { readonly vct: string; readonly integrity: string | undefined } | undefined = { vct, integrity };
    for (let remainingTypes = MAX_TYPES; nextType !== undefined; remainingTypes--) {
      if (remainingTypes === 0) throw new Refusal('type_metadata_invalid', 'it extends too many types');
      const { claims, base } = parseType(await this.#document(tenant, nextType.vct, nextType.integrity), nextType.vct);
      rules.push(...claims);
      nextType = base;
    }
    return rules;
  }

  async #document(tenant: TenantConfiguration, vct: string, integrity: string | undefined): Promise<string> {
    const hostedText = await ownDocument(tenant, vct);
    if (hostedText !== undefined) {
      assertIntegrity(Buffer.from(hostedText), integrity);
      return hostedText;
    }
    if (parseWebAddress(vct)?.protocol !== 'https:') throw unavailable('its type is not an https address');
    if (integrity === undefined) throw unavailable('the metadata of its type have no hash (vct#integrity)');
    const name = [tenant.tenantId, vct, integrity].join(' ');
    const cached = this.#documents.get(name);
    if (cached !== undefined) return cached;
    return this.#fetching.run(name, async () => {
      const options = { tenantId: tenant.tenantId, accept: 'application/json', maxBytes: MAX_DOCUMENT_BYTES };
      const { body } = await download(this.ports.remote, vct, options, unavailable);
      assertIntegrity(body, integrity);
      const text = body.toString('utf8');
      this.#documents.set(name, text);
      return text;
    });
  }
}

/** The document of a type that the tenant hosts itself, without a call. */
async function ownDocument(tenant: TenantConfiguration, vct: string): Promise<string | undefined> {
  const { issuer } = tenant;
  if (!vct.startsWith(`${issuer}/`)) return undefined;
  const configurations = await tenant.credentialConfigurations();
  const configuration = configurations.find((candidate) => typeAddress(candidate, issuer) === vct);
  return configuration && hostedType(tenant, configuration)?.text;
}

function assertIntegrity(document: Buffer, integrity: string | undefined): void {
  if (integrity !== undefined && !matchesIntegrity(document, integrity))
    throw new Refusal('type_metadata_invalid', 'the hash in the credential does not match the document');
}
