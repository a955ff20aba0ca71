import type { RefusalReason } from '../../../domain/shared/refusal.ts';
import type { Asked } from '../../support/present.ts';
import { digestOf, type Members } from '../../support/sd-jwt-maker.ts';
import { CARD_QUERY, type Case, PASS_QUERY, type PresentationCase, refused, type World } from './world.ts';

const ENTRY = { type: 'urn:example:payment', credential_ids: ['card'], amount: '12.50 EUR' };
const SECOND = { ...ENTRY, amount: '1.00 EUR' };

const textsOf = ({ payload }: Asked): readonly string[] => payload['transaction_data'];
const hashes = (texts: readonly string[], algorithm?: string) =>
  texts.map((text) => digestOf(text, algorithm));
const decoded = (text: string) => Buffer.from(text, 'base64url').toString();

/** Confirms something else than what was asked for. */
const confirming = (
  row: number,
  what: string,
  reason: RefusalReason,
  claims: (texts: readonly string[], world: World) => Members | Promise<Members>,
  entries: readonly Members[] = [ENTRY],
): PresentationCase => ({
  row,
  what,
  reason,
  effect: 'needed',
  configuration: { transaction_data: entries },
  async present(world, asked) {
    return world.card(asked, { kb: await claims(textsOf(asked), world) });
  },
});
const MISMATCH = 'transaction_data_mismatch';
const NAMED = { ...ENTRY, transaction_data_hashes_alg: ['sha-384', 'sha-512'] };

/** What the holder confirms with the presentation (OpenID4VP 1.0 section 8.4 and appendix B.3.3.1). */
export const transactionDataCases: readonly PresentationCase[] = [
  confirming(127, 'no hashes', 'transaction_data_missing', () => ({})),
  confirming(127, 'an empty list of hashes', MISMATCH, () => ({ transaction_data_hashes: [] })),
  confirming(127, 'a hash that is no list', MISMATCH, (texts) => ({
    transaction_data_hashes: hashes(texts)[0],
  })),
  confirming(128, 'a hash over the decoded JSON', MISMATCH, (texts) => ({
    transaction_data_hashes: hashes(texts.map(decoded)),
  })),
  confirming(128, 'a hash over text that was encoded again', MISMATCH, (texts) => ({
    transaction_data_hashes: hashes(
      texts.map((text) =>
        Buffer.from(JSON.stringify(JSON.parse(decoded(text)), null, 1)).toString('base64url'),
      ),
    ),
  })),
  confirming(128, 'a hash in hex', MISMATCH, (texts) => ({
    transaction_data_hashes: hashes(texts).map((hash) => Buffer.from(hash, 'base64url').toString('hex')),
  })),
  confirming(129, 'the hash of another session', MISMATCH, async (_, world) => ({
    transaction_data_hashes: hashes(textsOf(await world.ask({ transaction_data: [SECOND] }))),
  })),
  confirming(
    130,
    'one hash for two entries',
    MISMATCH,
    (texts) => ({ transaction_data_hashes: hashes(texts.slice(0, 1)) }),
    [ENTRY, SECOND],
  ),
  confirming(
    130,
    'one hash twice for two entries',
    MISMATCH,
    ([first = '']) => ({ transaction_data_hashes: hashes([first, first]) }),
    [ENTRY, SECOND],
  ),
  confirming(131, 'a hash that belongs to nothing', MISMATCH, (texts) => ({
    transaction_data_hashes: [...hashes(texts), digestOf('x')],
  })),
  confirming(
    132,
    'an algorithm that was not asked for',
    'transaction_data_alg',
    (texts) => ({ transaction_data_hashes: hashes(texts), transaction_data_hashes_alg: 'sha-256' }),
    [NAMED],
  ),
  confirming(
    132,
    'no algorithm though some were asked for',
    'transaction_data_alg',
    (texts) => ({ transaction_data_hashes: hashes(texts, 'sha384') }),
    [NAMED],
  ),
  confirming(132, 'an algorithm though none was asked for', 'transaction_data_alg', (texts) => ({
    transaction_data_hashes: hashes(texts, 'sha384'),
    transaction_data_hashes_alg: 'sha-384',
  })),
  confirming(132, 'an algorithm that nobody knows', 'transaction_data_alg', (texts) => ({
    transaction_data_hashes: hashes(texts),
    transaction_data_hashes_alg: 'sha-1',
  })),
];

const both = (entry: Members, credential_sets?: readonly Members[]) => ({
  transaction_data: [entry],
  dcql_query: { credentials: [CARD_QUERY, PASS_QUERY], ...(credential_sets && { credential_sets }) },
});

/** The same where several credentials are presented. */
export const transactionDataResponseCases: readonly Case[] = [
  {
    row: 133,
    what: 'the hash in a credential that may not confirm',
    configuration: both(ENTRY),
    run: (world, asked) => {
      const kb = { transaction_data_hashes: hashes(textsOf(asked)) };
      return world.answer(asked, { card: [world.card(asked)], pass: [world.pass(asked, { kb })] });
    },
    expected: refused('presentation_refused'),
  },
  {
    row: 133,
    what: 'the hash in a credential that may not confirm, the other one being left out',
    configuration: both(ENTRY, [{ options: [['pass'], ['card']] }]),
    run: (world, asked) => {
      const kb = { transaction_data_hashes: hashes(textsOf(asked)) };
      return world.answer(asked, { pass: [world.pass(asked, { kb })] });
    },
    expected: refused('presentation_refused'),
  },
  {
    row: 133,
    what: 'the hash in none of two that may confirm',
    configuration: both({ ...ENTRY, credential_ids: ['card', 'pass'] }),
    run: (world, asked) => world.answer(asked, { card: [world.card(asked)], pass: [world.pass(asked)] }),
    expected: refused('presentation_refused'),
  },
  {
    row: 133,
    what: 'the hash in a credential that is discarded',
    configuration: both({ ...ENTRY, credential_ids: ['card', 'pass'] }, [
      { options: [['pass']] },
      { options: [['card']], required: false },
    ]),
    run: (world, asked) => {
      const kb = { transaction_data_hashes: hashes(textsOf(asked)), aud: 'other' };
      return world.answer(asked, { card: [world.card(asked, { kb })], pass: [world.pass(asked)] });
    },
    expected: refused('presentation_refused'),
  },
];
