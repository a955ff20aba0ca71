import { LRUCache } from 'lru-cache';
import type { DisclosedObject } from '../../domain/formats/sd-jwt/disclosures.ts';
import { typeAddress } from '../../domain/issuance/metadata.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { Refusal } from '../../domain/shared/refusal.ts';
import { parseWebAddress } from '../../domain/shared/web-address.ts';
import { findTypeProblem, fitsIntegrity, type PresentedTypeClaim, parseType } from '../../domain/verification/type-conformance.ts';
import { needs } from '../needs.ts';
import { Remote } from '../ports/remote.ts';
import { boundedBytes } from '../tenant-cache/bounded.ts';
import { SingleFlight } from '../tenant-cache/single-flight.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { download } from '../trust-lists/fetched-lists.ts';
import { hostedType } from './hosted-type.ts';

const MAX_DOCUMENT_BYTES = 256 * 1024;
const MAX_CACHE_BYTES = 8 * 1024 * 1024;
/** A type, what it specializes, and so on. */
const MAX_TYPES = 5;

const unavailable = (why: string) => new Refusal('type_metadata_unavailable', why);

/** Holds credentials against the metadata of their types (SD-JWT VC section 5). */
export class TypeMetadata extends needs({ remote: Remote }) {
  /** By tenant, type and hash: what a hash is of never changes. */
  readonly #documents = new LRUCache<string, string>(boundedBytes(MAX_CACHE_BYTES));
  readonly #fetching = new SingleFlight<string>();

  /**
   * @param visible what every presentation of the credential shows, digests and all.
   * @throws Refusal `type_metadata_unavailable`, `type_metadata_invalid`, `type_metadata_broken`.
   */
  async verify(configured: TenantConfiguration, claims: DisclosedObject, visible: JsonObject): Promise<void> {
    const { vct, 'vct#integrity': integrity } = visible;
    if (typeof vct !== 'string') throw unavailable('the credential names no type');
    const rules = await this.#rules(configured, vct, typeof integrity === 'string' ? integrity : undefined);
    const fault = findTypeProblem(rules, claims, visible);
    if (fault !== undefined) throw new Refusal('type_metadata_broken', fault);
  }

  /** Those of the type, and of what it specializes. */
  async #rules(configured: TenantConfiguration, vct: string, integrity: string | undefined): Promise<readonly PresentedTypeClaim[]> {
    const rules: PresentedTypeClaim[] = [];
    let next: { readonly vct: string; readonly integrity: string | undefined } | undefined = { vct, integrity };
    for (let left = MAX_TYPES; next !== undefined; left--) {
      if (left === 0) throw new Refusal('type_metadata_invalid', 'too many types above it');
      const { claims, base } = parseType(await this.#document(configured, next.vct, next.integrity), next.vct);
      rules.push(...claims);
      next = base;
    }
    return rules;
  }

  async #document(configured: TenantConfiguration, vct: string, integrity: string | undefined): Promise<string> {
    const own = await ownDocument(configured, vct);
    if (own !== undefined) {
      assertIntegrity(Buffer.from(own), integrity);
      return own;
    }
    if (parseWebAddress(vct)?.protocol !== 'https:') throw unavailable('its type is no https address');
    if (integrity === undefined) throw unavailable('the metadata of its type have no hash (vct#integrity)');
    const name = [configured.tenantId, vct, integrity].join(' ');
    const known = this.#documents.get(name);
    if (known !== undefined) return known;
    return this.#fetching.run(name, async () => {
      const wanted = { tenantId: configured.tenantId, accept: 'application/json', maxBytes: MAX_DOCUMENT_BYTES };
      const { body } = await download(this.ports.remote, vct, wanted, unavailable);
      assertIntegrity(body, integrity);
      const text = body.toString('utf8');
      this.#documents.set(name, text);
      return text;
    });
  }
}

/** Of a type that the tenant hosts itself: no call. */
async function ownDocument(configured: TenantConfiguration, vct: string): Promise<string | undefined> {
  const { issuer } = configured;
  if (!vct.startsWith(`${issuer}/`)) return undefined;
  const configurations = await configured.credentialConfigurations();
  const configuration = configurations.find((one) => typeAddress(one, issuer) === vct);
  return configuration && hostedType(configured, configuration)?.text;
}

function assertIntegrity(document: Buffer, integrity: string | undefined): void {
  if (integrity !== undefined && !fitsIntegrity(document, integrity))
    throw new Refusal('type_metadata_invalid', 'the hash in the credential is of another document');
}
