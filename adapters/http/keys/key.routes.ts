import { z } from 'zod';
import { DeleteKey, FindCertificates } from '../../../application/keys/certificates.ts';
import { CreateKeyChain } from '../../../application/keys/key-chains.ts';
import { keyIdOf } from '../../../application/keys/shared-key.ts';
import { ServiceSettings } from '../../../application/ports/settings.ts';
import { KeyCreation } from '../../../domain/keys/key-chain-input.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { ListQuery, pageOf } from '../output/page-of.ts';
import { warningsFor, withWarnings } from '../output/warnings.ts';
import { family, reply, route } from '../route.ts';
import { DeletedView } from '../shapes.ts';
import { common, writeAccess } from './common.ts';
import { KeyView, toKeyView } from './key.view.ts';

const params = z.object({ id: z.string().max(128).describe('Key id') });

/** Keys of key chains in the vocabulary of certificates: a key has one certificate or several. */
export const keyRoutes = family(
  { findCertificates: FindCertificates, createKeyChain: CreateKeyChain, deleteKey: DeleteKey, settings: ServiceSettings },
  ({ findCertificates, createKeyChain, deleteKey, settings }) => [
    route({
      ...common,
      method: 'get',
      path: '/key',
      operationId: 'listKeys',
      summary: 'List the keys of the tenant',
      query: ListQuery,
      responses: { 200: z.array(KeyView) },
      async handle({ caller, query }) {
        const { all: chains } = await findCertificates.execute(caller);
        const namedChains = chains.filter((chain) => keyIdOf(chain, chains) === chain.id);
        return pageOf({
          all: namedChains,
          query,
          address: `${settings.publicUrl}/key`,
          keyOf: ({ id }) => id,
          toView: (chain) => toKeyView(chain, chains),
        });
      },
    }),
    route({
      ...common,
      method: 'get',
      path: '/key/:id',
      operationId: 'getKey',
      exampleParameters: { id: 'diplomas' },
      summary: 'Read a key',
      params,
      responses: { 200: KeyView },
      async handle({ caller, params: { id } }) {
        const { all: chains } = await findCertificates.execute(caller);
        const chain = chains.find((candidate) => candidate.id === id && keyIdOf(candidate, chains) === id);
        if (chain === undefined) throw new Failure('not_found', 'there is no key with this id');
        return reply(200, toKeyView(chain, chains));
      },
    }),
    route({
      ...writeAccess,
      method: 'post',
      path: '/key',
      operationId: 'createKey',
      summary: 'Create or import a key',
      description: 'It signs nothing until POST /certs creates certificates for it, unless `usages` is set.',
      body: KeyCreation,
      example: { id: 'diplomas', description: 'Signs diplomas' },
      responses: { 201: withWarnings(KeyView), 409: 'The id is already used' },
      async handle({ caller, body: { key, usages = [], ...body } }) {
        const creation = { ...body, usages };
        const chain = await createKeyChain.execute(caller, key === undefined ? creation : { ...creation, key });
        const warnings = warningsFor('key-chain', chain, caller.tenant.profile);
        return reply(201, { ...toKeyView(chain, [chain]), warnings });
      },
    }),
    route({
      ...writeAccess,
      method: 'delete',
      path: '/key/:id',
      operationId: 'deleteKey',
      exampleParameters: { id: 'diplomas' },
      summary: 'Delete a key and its certificates',
      params,
      responses: { 200: DeletedView, 409: 'One of its certificates is in use; then none is deleted' },
      async handle({ caller, params: { id } }) {
        await deleteKey.execute(caller, id);
        return reply(200, { id });
      },
    }),
  ],
);
