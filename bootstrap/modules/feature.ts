import type { Family } from '../../adapters/http/route.ts';
import type { Token, Tokens } from '../../application/needs.ts';

/** What a feature brings along. The order of routes is that in which they are tried. */
export type Feature = {
  readonly classes: readonly Wired[];
  /** What wallets and everybody call; tried before all that administrators call. */
  readonly open?: readonly Family[];
  readonly administered?: readonly Family[];
};

/** A class that says what it needs, or needs nothing; or one of which that is said here. */
export type Wired = { readonly needs: Tokens; new (ports: never): unknown } | (new () => unknown) | Given;

export type Given = { readonly type: Token; readonly needs: Tokens; readonly as: readonly Token[] };

type TokensOf<Ports> = { readonly [Name in keyof Ports]: Token<Ports[Name]> };

/**
 * A class that takes ports without saying it itself. A missing, surplus or wrongly typed port is a compile error at the
 * line that names it.
 * @param as ports that it is as well.
 */
export function given<T, Ports extends object>(
  type: new (ports: Ports) => T,
  needs: TokensOf<Ports>,
  ...as: readonly Token<T>[]
): Given {
  return { type: type as Token, needs: needs as unknown as Tokens, as };
}
