import { parseArgs } from 'node:util';

export type Options = {
  /** A service that runs; absent: one is started. */
  readonly service?: { readonly address: string; readonly clientId: string; readonly secret: string };
  /** The folder of the tools that were built or installed apart from this project. */
  readonly tools: string | undefined;
  /** These tools alone. */
  readonly only: readonly string[];
  readonly write: boolean;
  /** Of Schemathesis, for each operation. */
  readonly examples: number;
};

export const USAGE = `usage: npm run judge -- [--tools <folder>] [--only <tool>]... [--write] [--examples <number>] [--service <url>]
  --tools      where tools of others are (VIDIMUS_JUDGE_TOOLS): the programs eudi-dev and schemathesis
  --only       judge by these alone: eudi-dev, @openid4vc, Credo, readers, Schemathesis
  --write      write docs/interoperability.md, by all tools
  --examples   requests of Schemathesis for each operation; 3 unless stated
  --service    judge a service that runs instead of one that is started; the credentials of its root client stand in
               VIDIMUS_JUDGE_CLIENT_ID and VIDIMUS_JUDGE_CLIENT_SECRET. It has to be allowed to call 127.0.0.1`;

const MAX_EXAMPLES = 1000;

/** @returns undefined where something is wrong with them. */
export function readOptions(
  given: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Options | undefined {
  try {
    const { values } = parseArgs({
      args: [...given],
      options: {
        service: { type: 'string' },
        tools: { type: 'string' },
        only: { type: 'string', multiple: true },
        write: { type: 'boolean', default: false },
        examples: { type: 'string', default: '3' },
      },
    });
    const examples = Number(values.examples);
    // A page of some tools would lose what is known of the others.
    if (values.write && values.only !== undefined) return undefined;
    if (!Number.isInteger(examples) || examples < 1 || examples > MAX_EXAMPLES) return undefined;
    const shared = {
      tools: values.tools ?? environment['VIDIMUS_JUDGE_TOOLS'],
      ...{ only: values.only ?? [], write: values.write, examples },
    };
    if (values.service === undefined) return shared;
    const clientId = environment['VIDIMUS_JUDGE_CLIENT_ID'];
    const secret = environment['VIDIMUS_JUDGE_CLIENT_SECRET'];
    if (!URL.canParse(values.service) || clientId === undefined || secret === undefined) return undefined;
    return { ...shared, service: { address: values.service.replace(/\/$/, ''), clientId, secret } };
  } catch {
    return undefined;
  }
}
