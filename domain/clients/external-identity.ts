import { type Json, type JsonObject, valueAt } from '../shared/json.ts';
import { Role } from './role.ts';
import { isServiceName } from './service-names.ts';

/** How tokens of an external OpenID provider name the tenant and the roles. */
export type ExternalIdentityRules = {
  /** Claim that holds the tenant; for an account that manages tenants, its own client id. */
  readonly subjectClaim: string;
  /** Where roles stand, names joined by dots; undefined for the usual places. */
  readonly rolesClaim: string | undefined;
};

export type ExternalIdentity = {
  readonly subject: string;
  readonly clientId: string;
  readonly roles: readonly Role[];
};

const USUAL_PLACES = ['roles', 'realm_access.roles'];
const MAX_ROLES = 200;
const MAX_NAME_LENGTH = 256;

/**
 * Reads the claims of a verified token.
 * @returns undefined when it does not say for whom it is: nobody is anybody by default.
 */
export function readExternalIdentity(
  claims: JsonObject,
  { subjectClaim, rolesClaim }: ExternalIdentityRules,
): ExternalIdentity | undefined {
  const subject = nameAt(claims[subjectClaim]);
  // RFC 9068 section 2.2; `azp` of OpenID Connect for providers that do not follow it
  const clientId = nameAt(claims['client_id']) ?? nameAt(claims['azp']);
  if (subject === undefined || clientId === undefined || !isFit(clientId)) return undefined;
  const places = rolesClaim === undefined ? USUAL_PLACES : [rolesClaim];
  const found = places.map((place) => valueAt(claims, place)).find((value) => value !== undefined);
  return { subject, clientId, roles: readRoles(found) };
}

function nameAt(value: Json | undefined): string | undefined {
  return typeof value === 'string' && value !== '' && value.length <= MAX_NAME_LENGTH ? value : undefined;
}

/** RFC 6749 appendix A.1; and nobody passes for the service in the audit log. */
function isFit(clientId: string): boolean {
  return /^[\x20-\x7e]+$/.test(clientId) && !isServiceName(clientId);
}

/** Providers have roles of their own in the same place, so names that we do not know are passed over. */
function readRoles(value: unknown): readonly Role[] {
  if (!Array.isArray(value) || value.length > MAX_ROLES) return [];
  return [
    ...new Set(
      value.flatMap((name) => {
        const role = Role.safeParse(name);
        return role.success ? [role.data] : [];
      }),
    ),
  ];
}
