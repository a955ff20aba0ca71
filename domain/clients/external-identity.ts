import { hash } from 'node:crypto';
import { type Json, type JsonObject, valueAt } from '../shared/json.ts';
import { Role } from './role.ts';
import { isServiceName } from './service-names.ts';

/** How tokens of an external OpenID provider name the tenant and the roles. */
export type ExternalIdentityRules = {
  /** Claim that holds the tenant; for an account that manages tenants, its own client id. */
  readonly subjectClaim: string;
  /** Claim that names the person who calls. */
  readonly actorClaim: string;
  /** Where roles stand, names joined by dots; undefined for the usual places. */
  readonly rolesClaim: string | undefined;
};

export type ExternalIdentity = {
  readonly subject: string;
  readonly clientId: string;
  /** Absent where the token names nobody beside its client and its tenant. */
  readonly person?: string;
  readonly roles: readonly Role[];
};

const USUAL_PLACES = ['roles', 'realm_access.roles'];
const MAX_ROLES = 200;
const MAX_NAME_LENGTH = 256;

/**
 * Reads the claims of a verified token.
 * @returns undefined when it does not say for whom it is: nobody is anybody by default.
 */
export function parseExternalIdentity(
  claims: JsonObject,
  { subjectClaim, actorClaim, rolesClaim }: ExternalIdentityRules,
): ExternalIdentity | undefined {
  const subject = nameAt(claims[subjectClaim]);
  // RFC 9068 section 2.2; `azp` of OpenID Connect for providers that do not follow it
  const clientId = nameAt(claims['client_id']) ?? nameAt(claims['azp']);
  if (subject === undefined || clientId === undefined || !isFit(clientId)) return undefined;
  const places = rolesClaim === undefined ? USUAL_PLACES : [rolesClaim];
  const found = places.map((place) => valueAt(claims, place)).find((value) => value !== undefined);
  const person = actorClaim === subjectClaim ? undefined : parsePerson(claims[actorClaim], clientId);
  return { subject, clientId, roles: parseRoles(found), ...(person !== undefined && { person }) };
}

/** Characters of a person's name that are kept as they are. */
const MAX_PERSON_LENGTH = 100;
/** Of client and person together, in the column of the audit log. */
const MAX_ACTOR_LENGTH = 250;

/** The name stands in logs, so one that is long or has control characters is replaced by its hash, which still tells persons apart. */
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

/** RFC 6749 appendix A.1; and nobody passes for the service in the audit log. */
function isFit(clientId: string): boolean {
  return /^[\x20-\x7e]+$/.test(clientId) && !isServiceName(clientId);
}

/** Providers have roles of their own in the same place, so names that we do not know are passed over. */
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
