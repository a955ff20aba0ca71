import { z } from 'zod';
import type { CreateKeyChain } from '../../../application/keys/create-key-chain.ts';
import type { DeleteKeyChain } from '../../../application/keys/delete-key-chain.ts';
import type { GetKeyChain } from '../../../application/keys/get-key-chain.ts';
import { KeyChainCreation, KeyChainUpdate } from '../../../application/keys/key-chain-input.ts';
import type { ListKeyChains } from '../../../application/keys/list-key-chains.ts';
import type { ListKeyProviders } from '../../../application/keys/list-key-providers.ts';
import type { UpdateKeyChain } from '../../../application/keys/update-key-chain.ts';
import { type Route, Routes, reply, route } from '../route.ts';
import { DeletedView } from '../shapes/deleted.view.ts';
import { KeyChainView, KeyProviderView, toKeyChainView } from './key-chain.view.ts';

const params = z.object({ id: z.string().max(128).describe('Key chain id') });
const common = {
  tag: 'Keys',
  surface: 'admin',
  access: { anyOf: ['issuance:manage', 'presentation:manage'] },
} as const;

type UseCases = {
  readonly listKeyChains: ListKeyChains;
  readonly getKeyChain: GetKeyChain;
  readonly createKeyChain: CreateKeyChain;
  readonly updateKeyChain: UpdateKeyChain;
  readonly deleteKeyChain: DeleteKeyChain;
  readonly listKeyProviders: ListKeyProviders;
};

/** Keys in the vocabulary of key chains. */
export class KeyChainRoutes extends Routes {
  readonly routes: readonly Route[];

  constructor(useCases: UseCases) {
    super();
    this.routes = [...readRoutes(useCases), ...writeRoutes(useCases)];
  }
}

function readRoutes({ listKeyChains, getKeyChain, listKeyProviders }: UseCases): Route[] {
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
      summary: 'Read a key chain',
      params,
      responses: { 200: KeyChainView },
      async handle({ caller, params: { id } }) {
        return reply(200, toKeyChainView(await getKeyChain.execute(caller, id)));
      },
    }),
  ];
}

function writeRoutes({ createKeyChain, updateKeyChain, deleteKeyChain }: UseCases): Route[] {
  return [
    route({
      ...common,
      method: 'post',
      path: '/key-chain',
      summary: 'Create a key chain',
      description: 'Makes a key, an internal authority for it and the certificate of the key.',
      body: KeyChainCreation,
      example: { id: 'pid-signing', usageType: 'signing', description: 'Signs PID credentials' },
      responses: { 201: KeyChainView },
      async handle({ caller, body }) {
        return reply(201, toKeyChainView(await createKeyChain.execute(caller, body)));
      },
    }),
    route({
      ...common,
      method: 'patch',
      path: '/key-chain/:id',
      summary: 'Change a key chain',
      params,
      body: KeyChainUpdate,
      example: { description: 'Signs diplomas' },
      responses: { 200: KeyChainView, 409: 'A configuration needs a usage that would go' },
      async handle({ caller, params: { id }, body }) {
        return reply(200, toKeyChainView(await updateKeyChain.execute(caller, id, body)));
      },
    }),
    route({
      ...common,
      method: 'delete',
      path: '/key-chain/:id',
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
