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

export const WebPage = WebAddress.describe('Where users read it');
export const Purposes = listUpTo(strictObject({ lang: z.string().min(2).max(35), content: Text }), 50).describe(
  'Why the data is asked for, by language',
);
export const Intermediary = z
  .union([Text, strictObject({ sub: Text, sname: Text.optional() })])
  .describe('Who asks on behalf of the relying party, as the registrar names them');

const Meta = z.record(z.string().max(1_000), z.json()).transform((value) => value as JsonObject);
const PathComponent = z.union([z.string().max(1_000), z.null(), z.int().nonnegative()]);
const Attestation = { format: textUpTo(200), meta: Meta } as const;

/** Credentials as a registrar takes them down: a part of the query language (OpenID4VP 1.0 section 6.1). */
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

export const registrationCertificateMembers = {
  jwt: textUpTo(MAX_JWT_LENGTH).optional().describe('A certificate that was obtained elsewhere'),
  id: textUpTo(200).optional().describe('One that the registrar has issued'),
  body: RegistrationBody.optional().describe(
    'One to be obtained, in a configuration with the role `registrar:manage`. `credentials` is derived from the query unless given; `privacy_policy`, `support_uri` and ' +
      '`purpose` come from the defaults of the registrar configuration unless given, `purpose` first of all from `purpose` of the configuration',
  ),
} as const;

/** Several at once would leave open which one counts. */
export function isOneSource(request: { readonly jwt?: unknown; readonly id?: unknown; readonly body?: unknown }) {
  return [request.jwt, request.id, request.body].filter((source) => source !== undefined).length === 1;
}

export const ONE_SOURCE = 'give exactly one of jwt, id and body';
/** The same in the API document. */
export const EXCLUSIVE = {
  allOf: [{ oneOf: [{ required: ['jwt'] }, { required: ['id'] }, { required: ['body'] }] }],
};

/** Where the registration certificate of a presentation configuration comes from. */
export const RegistrationCertificateRequest = strictObject(registrationCertificateMembers)
  .refine(isOneSource, ONE_SOURCE)
  .meta({ id: 'RegistrationCertificateRequest', ...EXCLUSIVE });
export type RegistrationCertificateRequest = z.infer<typeof RegistrationCertificateRequest>;

/**
 * What is to be certified for a presentation configuration. Its purpose is told by what it orders, unless that tells another;
 * a certificate that is there already says what it says.
 */
export function certificateFor(
  request: RegistrationCertificateRequest,
  purpose: RegistrationBody['purpose'] | null,
): RegistrationCertificateRequest {
  const { body } = request;
  if (body === undefined || body.purpose !== undefined || purpose === undefined || purpose === null) return request;
  return { body: { ...body, purpose } };
}

/** What a query asks for, in the members that a registrar takes down: formats, types and claims, nothing else. */
export function requestedCredentials({ credentials }: DcqlQuery): readonly RequestedCredential[] {
  const wanted = credentials.map(({ format, meta, claims }) => ({
    format,
    meta: meta as JsonObject,
    ...(claims !== undefined && { claims: claims.map(({ path }) => ({ path })) }),
  }));
  const distinct = new Map(wanted.map((credential) => [JSON.stringify(credential), credential]));
  return [...distinct.values()];
}

/** What a certificate is for, as far as it is known: what is asked for, or what is issued. */
export type RegisteredUse = { readonly query?: DcqlQuery | undefined; readonly issued?: readonly IssuedType[] | undefined };

/** What every certificate has to say about its purpose (TS 119 475 section 5). */
const MANDATORY = ['privacy_policy', 'support_uri', 'purpose'] as const;

export type CompleteRegistrationBody = RegistrationBody & Required<Pick<RegistrationBody, (typeof MANDATORY)[number]>>;

/**
 * The body as it is sent: what was requested, then the defaults of the tenant, then what follows from the query.
 * @returns the name of a member that stands nowhere.
 */
export function completeRegistration(
  body: RegistrationBody,
  defaults: Partial<RegistrationBody> | null | undefined,
  { query, issued }: RegisteredUse,
): CompleteRegistrationBody | { readonly missing: string } {
  const credentials = body.credentials ?? (query && [...requestedCredentials(query)]);
  const complete = { ...defined(defaults ?? {}), ...defined(body) } as RegistrationBody;
  if (credentials !== undefined) complete.credentials = credentials;
  if (issued !== undefined) complete.provided_attestations ??= issued.map((one) => ({ format: one.format, meta: metaOf(one) }));
  const missing = MANDATORY.find((name) => complete[name] === undefined);
  if (missing !== undefined) return { missing };
  if (credentials === undefined && complete.provided_attestations === undefined) return { missing: 'credentials' };
  return complete as CompleteRegistrationBody;
}
