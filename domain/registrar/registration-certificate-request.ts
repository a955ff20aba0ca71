import { strictObject, z } from 'zod';
import type { DcqlQuery } from '../dcql/query.ts';
import { listUpTo, textUpTo } from '../shared/bounds.ts';
import { defined } from '../shared/defined.ts';
import type { JsonObject } from '../shared/json.ts';
import { ContactUri, WebAddress } from '../shared/web-address.ts';
import { type IssuedType, metaOf } from './coverage.ts';

const MAX_JWT_LENGTH = 64 * 1024;
const MAX_CREDENTIALS = 50;
const MAX_CLAIMS = 500;

const Text = textUpTo(1_000);

export const WebPage = WebAddress.describe('Address of the policy for users');
export const Purposes = listUpTo(strictObject({ lang: z.string().min(2).max(35), content: Text }), 50).describe(
  'Purpose of the request, by language',
);
export const Intermediary = z
  .union([Text, strictObject({ sub: Text, sname: Text.optional() })])
  .describe('Intermediary of the relying party, by its name at the registrar');

const Meta = z.record(z.string().max(1_000), z.json()).transform((value) => value as JsonObject);
const PathComponent = z.union([z.string().max(1_000), z.null(), z.int().nonnegative()]);
const Attestation = { format: textUpTo(200), meta: Meta } as const;

/** Credentials in a registration: a part of the query language (OpenID4VP 1.0 section 6.1). */
export const RequestedCredential = strictObject({
  ...Attestation,
  claims: listUpTo(strictObject({ path: listUpTo(PathComponent, 32) }), MAX_CLAIMS).optional(),
});
export type RequestedCredential = z.infer<typeof RequestedCredential>;

const RegistrationBody = strictObject({
  privacy_policy: WebPage.optional(),
  support_uri: ContactUri.optional(),
  intermediary: Intermediary.optional(),
  purpose: Purposes.optional(),
  credentials: listUpTo(RequestedCredential, MAX_CREDENTIALS).optional(),
  provided_attestations: listUpTo(strictObject(Attestation), MAX_CREDENTIALS).optional(),
});
export type RegistrationBody = z.infer<typeof RegistrationBody>;

export const registrationCertificateProperties = {
  jwt: textUpTo(MAX_JWT_LENGTH).optional().describe('A certificate of another source'),
  id: textUpTo(200).optional().describe('A certificate that the registrar has issued'),
  body: RegistrationBody.optional().describe(
    'A certificate to be issued, in a configuration with the role `registrar:manage`. `credentials` is derived from the query by default; `privacy_policy`, `support_uri` and ' +
      '`purpose` default to those of the registrar configuration, `purpose` primarily to `purpose` of the configuration',
  ),
} as const;

/** Several sources at once would be ambiguous. */
export function isOneSource(request: { readonly jwt?: unknown; readonly id?: unknown; readonly body?: unknown }) {
  return [request.jwt, request.id, request.body].filter((source) => source !== undefined).length === 1;
}

export const ONE_SOURCE = 'set exactly one of jwt, id and body';
/** The same rule for the API document. */
export const EXCLUSIVE = { allOf: [{ oneOf: [{ required: ['jwt'] }, { required: ['id'] }, { required: ['body'] }] }] };

/** Source of the registration certificate of a presentation configuration. */
export const RegistrationCertificateRequest = strictObject(registrationCertificateProperties)
  .refine(isOneSource, ONE_SOURCE)
  .meta({ id: 'RegistrationCertificateRequest', ...EXCLUSIVE });
export type RegistrationCertificateRequest = z.infer<typeof RegistrationCertificateRequest>;

/**
 * The certificate request for a presentation configuration. The purpose of the configuration is used unless the request sets one; an
 * existing certificate is not changed.
 */
export function registrationRequestFor(
  request: RegistrationCertificateRequest,
  purpose: RegistrationBody['purpose'] | null,
): RegistrationCertificateRequest {
  const { body } = request;
  if (body === undefined || body.purpose !== undefined || purpose === undefined || purpose === null) return request;
  return { body: { ...body, purpose } };
}

/** The requested credentials of a query, reduced to what a registrar records: formats, types and claims. */
export function requestedCredentials({ credentials }: DcqlQuery): readonly RequestedCredential[] {
  const credentialsOfQuery = credentials.map(({ format, meta, claims }) => ({
    format,
    meta: meta as JsonObject,
    ...(claims !== undefined && { claims: claims.map(({ path }) => ({ path })) }),
  }));
  const distinct = new Map(credentialsOfQuery.map((credential) => [JSON.stringify(credential), credential]));
  return [...distinct.values()];
}

/** The use of a certificate, as far as it is known: a query, or issued types. */
export type RegisteredUse = { readonly query?: DcqlQuery | undefined; readonly issued?: readonly IssuedType[] | undefined };

/** Mandatory properties of every certificate (TS 119 475 section 5). */
const MANDATORY = ['privacy_policy', 'support_uri', 'purpose'] as const;

export type CompleteRegistrationBody = RegistrationBody & Required<Pick<RegistrationBody, (typeof MANDATORY)[number]>>;

/**
 * The complete body: the request, completed by the defaults of the tenant and by values derived from the query.
 * @returns the name of a missing property.
 */
export function completeRegistration(
  body: RegistrationBody,
  defaults: Partial<RegistrationBody> | null | undefined,
  { query, issued }: RegisteredUse,
): CompleteRegistrationBody | { readonly missing: string } {
  const credentials = body.credentials ?? (query && [...requestedCredentials(query)]);
  const complete = { ...defined(defaults ?? {}), ...defined(body) } as RegistrationBody;
  if (credentials !== undefined) complete.credentials = credentials;
  if (issued !== undefined)
    complete.provided_attestations ??= issued.map((issuedType) => ({ format: issuedType.format, meta: metaOf(issuedType) }));
  const missingProperty = MANDATORY.find((name) => complete[name] === undefined);
  if (missingProperty !== undefined) return { missing: missingProperty };
  if (credentials === undefined && complete.provided_attestations === undefined) return { missing: 'credentials' };
  return complete as CompleteRegistrationBody;
}
