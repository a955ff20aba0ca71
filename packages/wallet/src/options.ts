import { homedir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { isMisbehaviour, MISBEHAVIOURS, type Misbehaviour } from './core/index.ts';

export type Options = {
  readonly link: string;
  readonly credentialsFile: string;
  readonly consentsWithoutPrompt: boolean;
  readonly isTracing: boolean;
  readonly txCode?: string;
  readonly misbehave?: Misbehaviour;
};

/** The command in the usage; `npx vidimus` sets it. */
const CALL = process.env['VIDIMUS_USAGE'] ?? 'npm run wallet -- <link> [options]';
const DEFAULT_CREDENTIALS_FILE = join(process.env['XDG_DATA_HOME'] ?? join(homedir(), '.local', 'share'), 'vidimus', 'wallet.json');

export const USAGE = `usage: ${CALL}
A test wallet: accepts offers, and answers presentation requests.

  <link>                   an offer or a request: openid-credential-offer:, openid4vp:, haip-vci:, haip-vp:, or the address
                           of a page that has one
  --tx-code <code>         the transaction code that the issuer sent by another channel
  --yes                    consents to everything without a prompt, also on the page of an issuer of this service
  --misbehave <how>        sends an invalid response, which must be rejected (below)
  --cards <file>           stores credentials with their keys in this file; default: ${DEFAULT_CREDENTIALS_FILE}
  --trace                  prints each call with its response, including secrets
  --help                   prints this help

ways to misbehave:
${Object.entries(MISBEHAVIOURS)
  .map(([name, { about: description }]) => `  ${name.padEnd(24)} ${description}`)
  .join('\n')}

Exits with 0 on success (of a misbehaviour: when it was rejected), 1 on failure, and 2 for invalid arguments.`;

/** The error for invalid arguments; its message is one sentence. */
export class UsageError extends Error {}

/** @throws UsageError */
export function readOptions(args: readonly string[]): Options | 'help' {
  const { values, positionals } = parseArguments(args);
  if (values.help) return 'help';
  const [link, ...more] = positionals;
  if (link === undefined) throw new UsageError('pass the link of an offer or of a request');
  if (more.length > 0) throw new UsageError('pass one link; quote it, since it contains characters that shells interpret');
  const { misbehave } = values;
  if (misbehave !== undefined && !isMisbehaviour(misbehave))
    throw new UsageError(`--misbehave is one of ${Object.keys(MISBEHAVIOURS).join(', ')}`);
  return {
    link,
    credentialsFile: values.cards ?? DEFAULT_CREDENTIALS_FILE,
    consentsWithoutPrompt: values.yes,
    isTracing: values.trace,
    ...(values['tx-code'] !== undefined && { txCode: values['tx-code'] }),
    ...(misbehave !== undefined && { misbehave }),
  };
}

function parseArguments(args: readonly string[]) {
  const flag = { type: 'boolean', default: false } as const;
  const text = { type: 'string' } as const;
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { 'tx-code': text, misbehave: text, cards: text, yes: flag, trace: flag, help: flag },
    });
  } catch (error) {
    throw new UsageError((error as Error).message.split(/\. |\n/)[0]);
  }
}
