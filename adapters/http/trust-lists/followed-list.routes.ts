import { object, z } from 'zod';
import { ServiceSettings } from '../../../application/ports/settings.ts';
import { ConfirmSigner, ListFollowedLists, SignerConfirmation } from '../../../application/trust-lists/followed-lists.ts';
import { fingerprintsOf } from '../../../domain/formats/der/fingerprints.ts';
import { writePemCertificates } from '../../../domain/formats/der/pem.ts';
import { withoutQuery } from '../../../domain/shared/without-query.ts';
import type { StoredListSummary } from '../../../domain/trust-lists/stored-list.ts';
import { ListQuery, pageOf } from '../output/page-of.ts';
import { family, route } from '../route.ts';

const common = { tag: 'Trust lists', surface: 'admin' } as const;
const MANAGERS = ['issuance:manage', 'presentation:manage'] as const;

const FollowedListView = object({
  id: z.string(),
  uri: z.string().describe('Without its query'),
  via: z.string().nullable().describe('The list of lists that points to it and defines its signer'),
  sequenceNumber: z.number().int().nullable().describe('Sequence number of the last valid version'),
  nextUpdate: z.iso.datetime().nullable().describe('End of the validity of that version'),
  checkedAt: z.iso.datetime().nullable().describe('Time of the last successful download; null if copies were removed since'),
  lookedAt: z.iso.datetime(),
  held: object({
    since: z.iso.datetime(),
    reason: z.string(),
    signer: object({ certificate: z.string().describe('PEM'), fingerprint: z.string() })
      .nullable()
      .describe('Signer of the fetched list, which is not trusted until an operator confirms it'),
  })
    .nullable()
    .describe('Problem of the downloaded version; the last valid version is used until it expires'),
}).meta({ id: 'FollowedTrustList', description: 'A trust list of another operator that the tenant relies on' });

/** External trust lists, as the checks of the tenant found them. */
export const followedListRoutes = family(
  { listFollowedLists: ListFollowedLists, confirmSigner: ConfirmSigner, settings: ServiceSettings },
  ({ listFollowedLists, confirmSigner, settings }) => [
    route({
      ...common,
      access: { anyOf: MANAGERS, unrestricted: true },
      method: 'get',
      path: '/trust/lists',
      operationId: 'listFollowedTrustLists',
      summary: 'List followed trust lists and their problems',
      description: 'Lists that require an operator first. At most 500, in all processes.',
      query: ListQuery,
      responses: { 200: z.array(FollowedListView) },
      async handle({ caller, query }) {
        const lists = await listFollowedLists.execute(caller);
        return pageOf({ all: lists, query, address: `${settings.publicUrl}/trust/lists`, keyOf, toView });
      },
    }),
    route({
      ...common,
      access: { anyOf: MANAGERS, unrestricted: true },
      method: 'post',
      path: '/trust/lists/:id/confirm-signer',
      operationId: 'confirmTrustListSigner',
      exampleParameters: { id: '<followed list>' },
      summary: 'Confirm the new signer of a trust list',
      description:
        'The waiting certificate is added to the signers in every configuration that uses the list with its present signers. ' +
        'It requires the roles for writing these configurations.',
      params: object({ id: z.string().max(100) }),
      body: SignerConfirmation,
      example: { fingerprint: '<fingerprint>' },
      responses: { 204: 'Done', 404: 'There is no such list', 409: 'No signer waits, or the list of lists defines it' },
      async handle({ caller, params, body }) {
        await confirmSigner.execute(caller, params.id, body);
        return { status: 204, empty: true };
      },
    }),
  ],
);

function keyOf({ id }: StoredListSummary): string {
  return id;
}

function toView({ id, place: location, sequenceNumber, endsAt, checkedAt, seenAt, held }: StoredListSummary) {
  const pem = held?.signer === undefined ? undefined : writePemCertificates([held.signer]);
  const signer = pem === undefined ? null : { certificate: pem, fingerprint: fingerprintsOf([pem])[0] ?? '' };
  return {
    id,
    uri: withoutQuery(location.uri),
    via: location.via === undefined ? null : withoutQuery(location.via),
    sequenceNumber: sequenceNumber === 0 ? null : sequenceNumber,
    nextUpdate: endsAt?.toISOString() ?? null,
    checkedAt: checkedAt?.toISOString() ?? null,
    lookedAt: seenAt.toISOString(),
    held: held && { since: held.since.toISOString(), reason: held.reason, signer },
  };
}
