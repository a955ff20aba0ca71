import { hash } from 'node:crypto';
import { type Json, type JsonObject, valueAt } from '../shared/json.ts';
import { Role } from './role.ts';
import { isServiceName } from './service-names.ts';

/** Claims of an external OpenID provider that identify tenant, person and roles. */
export type ExternalIdentityRules = {
  /** Claim with the tenant; for an account that manages tenants, its own client id. */
  readonly subjectClaim: string;
  /** Claim with the calling person. */
  readonly actorClaim: string;
  /** Dotted path of the roles; undefined for the default paths. */
  readonly rolesClaim: string | undefined;
};

export type ExternalIdentity = {
  readonly subject: string;
  readonly clientId: string;
  /** Absent if the token identifies a client and a tenant only. */
  readonly person?: string;
  readonly roles: readonly Role[];
};

const DEFAULT_ROLE_PATHS = ['roles', 'realm_access.roles'];
const MAX_ROLES = 200;
const MAX_NAME_LENGTH = 256;

/**
 * Parses the claims of a verified token.
 * @returns undefined if it does not identify tenant and client: there is no default identity.
 */
export function parseExternalIdentity(
  claims: JsonObject,
  { subjectClaim, actorClaim, rolesClaim }: ExternalIdentityRules,
): ExternalIdentity | undefined {
  const subject = nameAt(claims[subjectClaim]);
  // RFC 9068 section 2.2; `azp` of OpenID Connect for providers that do not follow it
  const clientId = nameAt(claims['client_id']) ?? nameAt(claims['azp']);
  if (subject === undefined || clientId === undefined || !isAllowedClientId(clientId)) return undefined;
  const paths = rolesClaim === undefined ? DEFAULT_ROLE_PATHS : [rolesClaim];
  const roleNames = paths.map((path) => valueAt(claims, path)).find((value) => value !== undefined);
  const person = actorClaim === subjectClaim ? undefined : parsePerson(claims[actorClaim], clientId);
  return { subject, clientId, roles: parseRoles(roleNames), ...(person !== undefined && { person }) };
}

/** Limit of a person's name that is logged unchanged. */
const MAX_PERSON_LENGTH = 100;
/** Limit of client and person together in the audit log's column. */
const MAX_ACTOR_LENGTH = 250;

/** The name is logged, so a long one or one with control characters is replaced by its hash, which still distinguishes persons. */
function parsePerson(value: Json | undefined, clientId: string): string | undefined {
  if (typeof value !== 'string' || value === '' || value === clientId) return undefined;
  const isPlain = value.length <= MAX_PERSON_LENGTH && /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]+$/u.test(value);
  const isFitting = clientId.length + value.length <= MAX_ACTOR_LENGTH;
  const person = isPlain && isFitting ? value : `sha256:${hash('sha256', value, 'base64url').slice(0, 22)}`;
  return clientId.length + person.length <= MAX_ACTOR_LENGTH ? person : undefined;
}

function nameAt(value: Json | undefined): string | undefined {
  return typeof value === 'string' && value !== '' && value.length <= MAX_NAME_LENGTH ? value : undefined;
}

/** RFC 6749 appendix A.1. A client must not impersonate the service in the audit log. */
function isAllowedClientId(clientId: string): boolean {
  return /^[\x20-\x7e]+$/.test(clientId) && !isServiceName(clientId);
}

/** The claim may contain roles of other applications, so unknown names are ignored. */
function parseRoles(value: unknown): readonly Role[] {
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
