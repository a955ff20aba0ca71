import { z } from 'zod';
import type { TenantCaller } from '../../../application/caller.ts';
import {
  CreateKeyChain,
  DeleteKeyChain,
  GetKeyChain,
  ListKeyChains,
  UpdateKeyChain,
} from '../../../application/keys/key-chains.ts';
import { ListKeyProviders } from '../../../application/keys/list-key-providers.ts';
import { RequestCertificate } from '../../../application/keys/request-certificate.ts';
import { RotateKeyChain } from '../../../application/keys/rotate-key-chain.ts';
import type { PortsOf } from '../../../application/needs.ts';
import {
  CertificateSigningRequest,
  KeyChainCreation,
  KeyChainImport,
  KeyChainRotation,
  KeyChainUpdate,
} from '../../../domain/keys/key-chain-input.ts';
import { family, type Route, reply, route, show } from '../route.ts';
import { DeletedView } from '../shapes/deleted.view.ts';
import { common, written } from './common.ts';
import { CertificateRequestView, KeyChainView, KeyProviderView, toKeyChainView } from './key-chain.view.ts';

const params = z.object({ id: z.string().max(128).describe('Key chain id') });

/** Of RFC 7515 appendix A.3: everybody knows it. */
const EXAMPLE_KEY = {
  kty: 'EC',
  crv: 'P-256',
  x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
  y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
  d: 'jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI',
};

const USE_CASES = {
  listKeyChains: ListKeyChains,
  getKeyChain: GetKeyChain,
  updateKeyChain: UpdateKeyChain,
  deleteKeyChain: DeleteKeyChain,
  listKeyProviders: ListKeyProviders,
  createKeyChain: CreateKeyChain,
  rotateKeyChain: RotateKeyChain,
  requestCertificate: RequestCertificate,
};
type UseCases = PortsOf<typeof USE_CASES>;

/** Keys in the vocabulary of key chains. */
export const keyChainRoutes = family(USE_CASES, (useCases) => [
  ...readRoutes(useCases),
  ...writeRoutes(useCases),
  ...keyRoutes(useCases),
]);

type Asked = { readonly caller: TenantCaller; readonly params: { readonly id: string } };

function shows({ getKeyChain }: UseCases) {
  return async ({ caller, params: { id } }: Asked) => {
    const chain = await getKeyChain.execute(caller, id);
    return show(200, toKeyChainView(chain), chain);
  };
}

function readRoutes(useCases: UseCases): Route[] {
  const { listKeyChains, listKeyProviders } = useCases;
  return [
    route({
      ...common,
      method: 'get',
      path: '/key-chain',
      summary: 'List the key chains of the tenant',
      responses: { 200: z.array(KeyChainView) },
      async handle({ caller }) {
        return reply(200, (await listKeyChains.execute(caller)).map(toKeyChainView));
      },
    }),
    // Before the route with an id, which would take it for one.
    route({
      ...common,
      method: 'get',
      path: '/key-chain/providers',
      summary: 'List where keys can be made',
      responses: { 200: z.array(KeyProviderView) },
      async handle() {
        return reply(200, await listKeyProviders.execute());
      },
    }),
    route({
      ...common,
      method: 'get',
      path: '/key-chain/:id',
      edits: { kind: 'key-chain' },
      summary: 'Read a key chain',
      params,
      responses: { 200: KeyChainView },
      handle: shows(useCases),
    }),
  ];
}

function writeRoutes(useCases: UseCases): Route[] {
  const { createKeyChain, updateKeyChain, deleteKeyChain } = useCases;
  return [
    route({
      ...written,
      method: 'post',
      path: '/key-chain',
      edits: { kind: 'key-chain' },
      summary: 'Create a key chain',
      description:
        'Makes a key, an internal authority for it unless another one is named, and its certificate.',
      body: KeyChainCreation,
      example: { id: 'pid-signing', usageType: 'signing', description: 'Signs PID credentials' },
      responses: { 201: KeyChainView, 409: 'The id is taken' },
      async handle({ caller, body }) {
        const chain = await createKeyChain.execute(caller, body);
        return show(201, toKeyChainView(chain), chain);
      },
    }),
    route({
      ...written,
      method: 'patch',
      path: '/key-chain/:id',
      edits: { kind: 'key-chain', id: ({ params }) => params.id },
      summary: 'Change a key chain',
      params,
      body: KeyChainUpdate,
      example: { description: 'Signs diplomas' },
      shows: shows(useCases),
      responses: {
        200: KeyChainView,
        409: 'Something needs a usage or an internal authority that would go, or the key was rotated meanwhile',
      },
      async handle({ caller, params: { id }, body }) {
        const chain = await updateKeyChain.execute(caller, id, body);
        return show(200, toKeyChainView(chain), chain);
      },
    }),
    route({
      ...written,
      method: 'delete',
      path: '/key-chain/:id',
      edits: { kind: 'key-chain', id: ({ params }) => params.id },
      summary: 'Delete a key chain',
      params,
      responses: { 200: DeletedView, 409: 'A configuration or status list names it' },
      async handle({ caller, params: { id } }) {
        await deleteKeyChain.execute(caller, id);
        return reply(200, { id });
      },
    }),
  ];
}

/** What is done to the keys themselves. */
function keyRoutes({ createKeyChain, rotateKeyChain, requestCertificate }: UseCases): Route[] {
  return [
    route({
      ...written,
      method: 'post',
      path: '/key-chain/import',
      summary: 'Import a key that was made elsewhere',
      description:
        'With `certificates`: those that others issued for it. Without: an internal authority certifies the key. ' +
        'The key is sealed and never shown again.',
      body: KeyChainImport,
      example: { id: 'imported', usageType: 'signing', key: EXAMPLE_KEY },
      responses: { 201: KeyChainView, 409: 'The id is taken' },
      async handle({ caller, body }) {
        return reply(201, toKeyChainView(await createKeyChain.execute(caller, body)));
      },
    }),
    route({
      ...written,
      method: 'post',
      path: '/key-chain/:id/rotate',
      summary: 'Give a key chain another key now',
      description: 'The key before it is published until everything that it signed has ended.',
      params,
      body: KeyChainRotation,
      example: {},
      responses: {
        200: KeyChainView,
        409: 'Its certificates come from outside, too many former keys count still, or somebody else rotates it',
      },
      async handle({ caller, params: { id }, body }) {
        return reply(200, toKeyChainView(await rotateKeyChain.execute(caller, id, body)));
      },
    }),
    route({
      ...written,
      method: 'post',
      path: '/key-chain/:id/csr',
      summary: 'Ask for a certificate elsewhere',
      description: 'Upload the answer with PATCH /key-chain/{id}; it is for the key that is active now.',
      params,
      body: CertificateSigningRequest,
      example: { subjectName: 'Acme', organization: 'Acme Ltd', country: 'DE' },
      responses: { 200: CertificateRequestView },
      async handle({ caller, params: { id }, body }) {
        return reply(200, { csr: await requestCertificate.execute(caller, id, body) });
      },
    }),
  ];
}
