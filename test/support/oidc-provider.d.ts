/** The parts of oidc-provider that the tests use; the package has no types. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http';

  export type Interaction = {
    readonly uid: string;
    readonly prompt: {
      readonly name: string;
      readonly details: {
        readonly missingOIDCScope?: readonly string[];
        readonly missingOIDCClaims?: readonly string[];
        readonly missingResourceScopes?: Readonly<Record<string, readonly string[]>>;
        readonly rar?: readonly object[];
      };
    };
    readonly params: Readonly<Record<string, string | undefined>>;
    readonly session?: { readonly accountId: string };
    readonly grantId?: string;
  };

  export type Grant = {
    addOIDCScope(scope: string): void;
    addOIDCClaims(claims: readonly string[]): void;
    addResourceScope(resource: string, scope: string): void;
    addRar(detail: object): void;
    save(): Promise<string>;
  };

  export type AccessToken = { readonly grantId?: string; setThumbprint(kind: 'jkt', thumbprint: string): void; save(): Promise<string> };

  export class Provider {
    constructor(issuer: string, configuration: object);
    readonly Client: { find(id: string): Promise<object | undefined> };
    readonly Grant: {
      new (values: { accountId: string | undefined; clientId: string | undefined }): Grant;
      find(id: string): Promise<Grant | undefined>;
    };
    readonly AccessToken: new (
      values: object,
    ) => AccessToken;
    readonly ResourceServer: new (
      identifier: string,
      values: object,
    ) => object;
    callback(): (request: IncomingMessage, response: ServerResponse) => void;
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Interaction>;
    interactionFinished(
      request: IncomingMessage,
      response: ServerResponse,
      result: object,
      options: { mergeWithLastSubmission: boolean },
    ): Promise<void>;
  }
}
