import { PROTOCOL_CLAIMS } from '../formats/sd-jwt/claim-names.ts';
import type { FieldError } from '../shared/failure.ts';
import { isJsonObject, type Json, type JsonObject } from '../shared/json.ts';
import type { ClaimPath, CredentialConfig } from './credential-config.ts';

/**
 * Claims that the configuration declares mandatory (OpenID4VCI 1.0 appendix B.2) and that are missing; a holder rejects a credential
 * without them (SD-JWT VC section 5.6.2).
 * @param claims for an mdoc the elements by namespace.
 */
export function findMissingClaims({ claims: descriptions = [] }: CredentialConfig, claims: JsonObject): FieldError[] {
  return descriptions
    .filter(({ mandatory, path }) => mandatory === true && !PROTOCOL_CLAIMS.has(String(path[0])))
    .filter(({ path }) => !selectsAnything(claims, path))
    .map(({ path }) => ({ path: `.${path.join('.')}`, message: 'is mandatory but missing' }));
}

function selectsAnything(value: Json | undefined, path: ClaimPath): boolean {
  if (value === undefined) return false;
  const [component, ...remainingPath] = path;
  if (component === undefined) return true;
  if (Array.isArray(value)) {
    const members = value as readonly Json[];
    if (component === null) return members.some((member) => selectsAnything(member, remainingPath));
    return typeof component === 'number' && selectsAnything(members[component], remainingPath);
  }
  if (typeof component !== 'string' || !isJsonObject(value) || !Object.hasOwn(value, component)) return false;
  return selectsAnything(value[component], remainingPath);
}
