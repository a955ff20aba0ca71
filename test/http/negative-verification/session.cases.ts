import { expect } from 'chai';
import type { Asked } from '../../support/present.ts';
import type { Answer } from '../../support/test-service.ts';
import type { World } from './world.ts';

const REDIRECTED = { redirectUri: 'https://shop.example/done/{sessionId}' };

/** One way to a result that somebody else is to have. */
export type ResultCase = {
  readonly row: number;
  readonly what: string;
  readonly status: 403 | 404;
  readonly read: (world: World, asked: Asked, code: string) => Promise<Answer>;
};

/** Makes a session whose result is there, and the code that the browser brings. */
export async function answered(world: World): Promise<{ asked: Asked; code: string }> {
  const asked = await world.ask(REDIRECTED);
  const answer = await world.answer(asked, { card: [world.card(asked)] });
  expect(answer.status, answer.text).to.equal(200);
  return { asked, code: new URL(answer.body.redirect_uri).searchParams.get('response_code') ?? '' };
}

const read = ({ admin }: World, id: string, code?: string, tenant?: 'rival') =>
  admin('GET', `/session/${id}${code === undefined ? '' : `?response_code=${code}`}`, undefined, tenant);

/** Who may see a result (OpenID4VP 1.0 sections 13.3 and 14.3). */
export const resultCases: readonly ResultCase[] = [
  {
    row: 148,
    what: 'a wrong response_code',
    status: 403,
    read: (world, { session }, code) => read(world, session, `${code}x`),
  },
  {
    row: 148,
    what: 'an empty response_code',
    status: 403,
    read: (world, { session }) => read(world, session, ''),
  },
  {
    row: 148,
    what: 'a response_code that was used',
    status: 403,
    async read(world, { session }, code) {
      expect((await read(world, session, code)).status).to.equal(200);
      return read(world, session, code);
    },
  },
  {
    row: 148,
    what: 'the response_code of another session',
    status: 403,
    read: async (world, { session }) => read(world, session, (await answered(world)).code),
  },
  {
    row: 148,
    what: 'a response_code of long ago',
    status: 403,
    read: (world, { session }, code) => world.later(301, () => read(world, session, code)),
  },
  {
    row: 149,
    what: 'the id that the wallet saw',
    status: 404,
    read: (world, { url }) => read(world, url.split('/').at(-1) ?? ''),
  },
  {
    row: 149,
    what: 'the state that the wallet saw',
    status: 404,
    read: (world, { payload }) => read(world, payload['state']),
  },
  {
    row: 150,
    what: 'a token of another tenant',
    status: 404,
    read: (world, { session }) => read(world, session, undefined, 'rival'),
  },
  {
    row: 150,
    what: 'a token of another tenant with the right response_code',
    status: 404,
    read: (world, { session }, code) => read(world, session, code, 'rival'),
  },
];

export async function expectNoResult(world: World, { read, status }: ResultCase): Promise<void> {
  const { asked, code } = await answered(world);
  const answer = await read(world, asked, code);
  expect(answer.status, answer.text).to.equal(status);
  expect(answer.text, 'no value is released').to.not.include('Erika');
}
