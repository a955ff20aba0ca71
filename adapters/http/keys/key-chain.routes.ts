import { z } from 'zod';
import type { TenantCaller } from '../../../application/caller.ts';
import { RequestCertificate } from '../../../application/keys/certificates.ts';
import {
  CreateKeyChain,
  DeleteKeyChain,
  GetKeyChain,
  ListKeyChains,
  ListKeyProviders,
  RotateKeyChain,
  UpdateKeyChain,
} from '../../../application/keys/key-chains.ts';
import { ServiceSettings } from '../../../application/ports/settings.ts';
import { ResignTrustLists } from '../../../application/trust-lists/resign-trust-lists.ts';
import type { KeyChain } from '../../../domain/keys/key-chain.ts';
import {
  CertificateSigningRequest,
  KeyChainCreation,
  KeyChainImport,
  KeyChainRotation,
  KeyChainUpdate,
} from '../../../domain/keys/key-chain-input.ts';
import { ListQuery, pageOf } from '../output/page-of.ts';
import { withWarnings } from '../output/warnings.ts';
import { resourceRoutes } from '../resource-routes.ts';
import { families, family, reply, route } from '../route.ts';
import { common, writeAccess } from './common.ts';
import {
  CertificateRequestView,
  KeyChainView,
  KeyProviderView,
  RotatedKeyChainView,
  toAffectedKeyChainView,
  toKeyChainView,
  toKeyProviderView,
} from './key-chain.view.ts';
import { findAuthorityProblems, keyWarnings } from './key-warnings.ts';

const params = z.object({ id: z.string().max(128).describe('Key chain id') });

/** Published key of RFC 7515 appendix A.3. */
const EXAMPLE_KEY = {
  kty: 'EC',
  crv: 'P-256',
  x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
  y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
  d: 'jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI',
};

/** Use cases that operate on the keys themselves. */
const ON_KEYS = {
  createKeyChain: CreateKeyChain,
  rotateKeyChain: RotateKeyChain,
  requestCertificate: RequestCertificate,
  signTrustListsAnew: ResignTrustLists,
};

const chain = resourceRoutes({
  ...common,
  kind: 'key-chain',
  path: '/key-chain',
  exampleId: 'pid-signing',
  params,
  writeOverrides: { access: writeAccess.access },
  view: KeyChainView,
  get: GetKeyChain,
  toView: toKeyChainView,
  findings: async (chain, { tenant }) => findAuthorityProblems(chain, await tenant.keyChains()),
});

const writtenChain = async (chain: KeyChain, caller: TenantCaller) => ({
  ...toKeyChainView(chain),
  warnings: keyWarnings(chain, await caller.tenant.keyChains(), caller),
});

export const keyChainRoutes = families(
  chain.list({ operationId: 'listKeyChains', summary: 'List the key chains of the tenant', by: ListKeyChains }),
  // This route precedes the one with an id, which would match its path, too.
  family({ listKeyProviders: ListKeyProviders, settings: ServiceSettings }, ({ listKeyProviders, settings }) => [
    route({
      ...common,
      method: 'get',
      path: '/key-chain/providers',
      operationId: 'listKeyProviders',
      summary: 'List the key providers',
      query: ListQuery,
      responses: { 200: z.array(KeyProviderView) },
      async handle({ caller, query }) {
        return pageOf({
          all: await listKeyProviders.execute(caller),
          query,
          address: `${settings.publicUrl}/key-chain/providers`,
          keyOf: ({ name }) => name,
          toView: toKeyProviderView,
        });
      },
    }),
  ]),
  chain.get({ operationId: 'getKeyChain', summary: 'Read a key chain' }),
  chain.create({
    operationId: 'createKeyChain',
    summary: 'Create a key chain',
    description: 'Creates a key, an internal authority for it unless another one is named, and its certificate.',
    body: KeyChainCreation,
    example: { id: 'pid-signing', usageType: 'signing', description: 'Signs PID credentials' },
    responses: { 409: 'The id is already used' },
    by: CreateKeyChain,
  }),
  chain.update({
    operationId: 'updateKeyChain',
    summary: 'Change a key chain',
    body: KeyChainUpdate,
    example: { description: 'Signs diplomas' },
    responses: { 409: 'A removed usage or internal authority is in use, or the key was rotated concurrently' },
    by: UpdateKeyChain,
  }),
  chain.delete({
    operationId: 'deleteKeyChain',
    summary: 'Delete a key chain',
    responses: { 409: 'A configuration or status list uses it' },
    by: DeleteKeyChain,
  }),
  family(ON_KEYS, ({ createKeyChain, rotateKeyChain, requestCertificate, signTrustListsAnew }) => [
    route({
      ...writeAccess,
      method: 'post',
      path: '/key-chain/import',
      operationId: 'importKeyChain',
      summary: 'Import an external key',
      description:
        'With `certificates`: an external authority issued them for the key. Without: an internal authority certifies the key. ' +
        'The key is sealed and never shown again.',
      body: KeyChainImport,
      example: { id: 'imported', usageType: 'signing', key: EXAMPLE_KEY },
      responses: { 201: withWarnings(KeyChainView), 409: 'The id is already used' },
      handle: async ({ caller, body }) => reply(201, await writtenChain(await createKeyChain.execute(caller, body), caller)),
    }),
    route({
      ...writeAccess,
      method: 'post',
      path: '/key-chain/:id/rotate',
      operationId: 'rotateKeyChain',
      exampleParameters: { id: 'pid-signing' },
      summary: 'Rotate the key of a key chain',
      description:
        'The previous key is published until everything that it signed has expired. With `provider`, this and all later ' +
        'keys are created there; the authority stays the same. With `compromised`, the public key is removed ' +
        'from every key chain of the tenant that has or had it: `affectedKeyChains` lists them.',
      params,
      body: KeyChainRotation,
      example: {},
      responses: {
        200: withWarnings(RotatedKeyChainView),
        409: 'Its certificates are from an external authority, too many previous keys are still valid, or another rotation is in progress',
      },
      async handle({ caller, params: { id }, body }) {
        const { chain: rotated, affected } = await rotateKeyChain.execute(caller, id, body);
        await signTrustListsAnew.execute(caller, affected);
        const affectedKeyChains = affected.map(toAffectedKeyChainView);
        return reply(200, { ...(await writtenChain(rotated, caller)), affectedKeyChains });
      },
    }),
    route({
      ...writeAccess,
      method: 'post',
      path: '/key-chain/:id/csr',
      operationId: 'createKeyChainRequest',
      exampleParameters: { id: 'pid-signing' },
      summary: 'Create a certificate signing request',
      description: 'Upload the certificate with PATCH /key-chain/{id}; it is for the presently active key.',
      params,
      body: CertificateSigningRequest,
      example: { subjectName: 'Acme', organization: 'Acme Ltd', country: 'DE' },
      responses: { 200: CertificateRequestView, 409: 'The key is compromised' },
      handle: async ({ caller, params: { id }, body }) => reply(200, { csr: await requestCertificate.execute(caller, id, body) }),
    }),
  ]),
);
