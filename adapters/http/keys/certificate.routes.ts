import { z } from 'zod';
import type { TenantCaller } from '../../../application/caller.ts';
import { CreateCertificate, FindCertificates, RequestCertificate } from '../../../application/keys/certificates.ts';
import { DeleteKeyChain, UpdateKeyChain } from '../../../application/keys/key-chains.ts';
import type { PortsOf } from '../../../application/needs.ts';
import { ServiceSettings } from '../../../application/ports/settings.ts';
import { CertificateCreation, CertificateSigningRequest, CertificateUpdate } from '../../../domain/keys/key-chain-input.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { ListQuery, pageOf } from '../output/page-of.ts';
import { withWarnings } from '../output/warnings.ts';
import { family, type Route, reply, route, show } from '../route.ts';
import { DeletedView } from '../shapes.ts';
import { CertificateView, toCertificateView } from './certificate.view.ts';
import { common, writeAccess } from './common.ts';
import { CertificateRequestView } from './key-chain.view.ts';
import { keyWarnings } from './key-warnings.ts';

const params = z.object({ certId: z.string().max(128).describe('Certificate id') });

const USE_CASES = {
  findCertificates: FindCertificates,
  createCertificate: CreateCertificate,
  updateKeyChain: UpdateKeyChain,
  deleteKeyChain: DeleteKeyChain,
  requestCertificate: RequestCertificate,
  settings: ServiceSettings,
};
type CertificateInput = { readonly caller: TenantCaller; readonly params: { readonly certId: string } };

type UseCases = PortsOf<typeof USE_CASES>;

/** The same keys in the vocabulary of certificates: a certificate id is a key chain id. */
export const certificateRoutes = family(USE_CASES, (useCases) => {
  const find = finder(useCases);
  return [...readRoutes(useCases, find), ...writeRoutes(useCases, find), requestRoute(useCases)];
});

/** @returns a function that reads a certificate. @throws Failure `not_found`. */
function finder({ findCertificates }: UseCases) {
  return async ({ caller, params: { certId } }: CertificateInput) => {
    const { found: matches, all: chains } = await findCertificates.execute(caller, { certId });
    const [chain] = matches;
    if (chain === undefined) throw new Failure('not_found', 'there is no such certificate');
    return { chain, all: chains, view: toCertificateView(chain, chains) };
  };
}

type Find = ReturnType<typeof finder>;

const readHandler = (find: Find) => async (input: CertificateInput) => {
  const { chain, view } = await find(input);
  return show(200, view, chain);
};

function readRoutes({ findCertificates, settings }: UseCases, find: Find): Route[] {
  return [
    route({
      ...common,
      method: 'get',
      path: '/certs',
      operationId: 'listCertificates',
      exampleParameters: { keyId: 'signing', limit: 20, sort: 'asc' },
      summary: 'List the certificates of the tenant',
      query: ListQuery.extend({ keyId: z.string().max(128).optional().describe('Only certificates of this key') }),
      responses: { 200: z.array(CertificateView) },
      async handle({ caller, query }) {
        const { found: matches, all: chains } = await findCertificates.execute(caller, { keyId: query.keyId });
        return pageOf({
          all: matches,
          query,
          address: `${settings.publicUrl}/certs`,
          keyOf: ({ id }) => id,
          toView: (chain) => toCertificateView(chain, chains),
        });
      },
    }),
    route({
      ...common,
      method: 'get',
      path: '/certs/:certId',
      operationId: 'getCertificate',
      edits: { kind: 'key-chain' },
      summary: 'Read a certificate',
      params,
      responses: { 200: CertificateView },
      handle: readHandler(find),
    }),
  ];
}

function writeRoutes({ createCertificate, updateKeyChain, deleteKeyChain }: UseCases, find: Find): Route[] {
  const edits = { kind: 'key-chain', id: ({ params: { certId } }: Pick<CertificateInput, 'params'>) => certId } as const;
  return [
    route({
      ...writeAccess,
      method: 'post',
      path: '/certs',
      operationId: 'createCertificate',
      exampleParameters: { keyId: 'signing', limit: 20, sort: 'asc' },
      summary: 'Give a key another certificate',
      description:
        'With `crt`: certificates obtained elsewhere for this key. Without: the internal authority of the key ' +
        'issues one. It is never self-signed, since wallets reject that. `certUsageTypes` may differ from those of the key; ' +
        'if access shares an authority with them, the response has a warning, and the profile `eu` rejects it.',
      body: CertificateCreation,
      example: { keyId: 'signing', certUsageTypes: ['signing'], id: 'signing-2', subjectName: 'Acme PID' },
      responses: {
        201: withWarnings(CertificateView),
        404: 'There is no such key',
        409: 'The id is already used, the key is compromised, or it was changed or rotated concurrently',
      },
      async handle({ caller, body }) {
        const { chain, all: chains } = await createCertificate.execute(caller, body);
        return reply(201, { ...toCertificateView(chain, chains), warnings: keyWarnings(chain, chains, caller) });
      },
    }),
    route({
      ...writeAccess,
      method: 'patch',
      path: '/certs/:certId',
      operationId: 'updateCertificate',
      edits,
      summary: 'Change a certificate',
      description: 'With `crt`: certificates of an external authority replace the present ones. The key stays.',
      params,
      body: CertificateUpdate,
      example: { description: 'Signs diplomas' },
      shows: readHandler(find),
      responses: {
        200: withWarnings(CertificateView),
        409: 'A removed usage or internal authority is in use, or the key was rotated concurrently',
      },
      async handle({ caller, params: { certId }, body }) {
        const { description, crt: certificates } = body;
        const namedUsages = body.usages?.map((usage) => (typeof usage === 'string' ? usage : usage.usage));
        const usages = body.certUsageTypes ?? namedUsages;
        const paths = { certificates: 'crt', usages: body.certUsageTypes === undefined ? 'usages' : 'certUsageTypes' };
        await updateKeyChain.execute(caller, certId, { description, usages, certificates }, paths);
        const { chain, all: chains, view } = await find({ caller, params: { certId } });
        return show(200, { ...view, warnings: keyWarnings(chain, chains, caller) }, chain);
      },
    }),
    route({
      ...writeAccess,
      method: 'delete',
      path: '/certs/:certId',
      operationId: 'deleteCertificate',
      edits,
      summary: 'Delete a certificate',
      description: 'The key is deleted with its last certificate.',
      params,
      responses: { 200: DeletedView, 409: 'A configuration or a list uses it' },
      async handle({ caller, params: { certId } }) {
        await deleteKeyChain.execute(caller, certId);
        return reply(200, { id: certId });
      },
    }),
  ];
}

function requestRoute({ requestCertificate }: UseCases): Route {
  return route({
    ...writeAccess,
    method: 'post',
    path: '/certs/:certId/csr',
    operationId: 'createCertificateRequest',
    summary: 'Create a certificate signing request',
    description: 'The key signs a request for a certificate of an external authority.',
    params,
    body: CertificateSigningRequest,
    example: { subjectName: 'Acme', organization: 'Acme Ltd', country: 'DE' },
    responses: { 200: CertificateRequestView, 409: 'The key is compromised' },
    async handle({ caller, params: { certId }, body }) {
      return reply(200, { csr: await requestCertificate.execute(caller, certId, body) });
    },
  });
}
