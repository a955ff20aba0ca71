/** Written by `npm run client:generate` from the OpenAPI document; not to be edited. */
export interface paths {
  "/oauth2/token": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Get an access token
     * @description Client credentials grant (RFC 6749 section 4.4), with the credentials in a Basic header or in the body. The body is JSON or a form.
     */
    post: operations["createAccessToken"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/console/login": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Login methods of the console */
    get: operations["getConsoleLogin"];
    put?: never;
    /**
     * Get an access token for a console link
     * @description The start of a service that is not in production prints a link to the console with a ticket, which is valid once and for half an hour. The token is that of the built-in client.
     */
    post: operations["logInToConsole"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/console/identity": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read the calling client, its tenant and its present roles
     * @description Requires one of the roles: `presentation:manage`, `presentation:request`, `issuance:manage`, `issuance:offer`, `clients:manage`, `tenants:manage`, `registrar:manage`.
     */
    get: operations["getIdentity"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/tenant": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List all tenants
     * @description Without removed tenants, which `GET /tenant-removal` lists until their data is deleted.
     *
     *     Requires one of the roles: `tenants:manage`.
     */
    get: operations["listTenants"];
    put?: never;
    /**
     * Create a tenant with its keys
     * @description Creates one key chain per usage. With `roles` it also creates the client `<id>-admin`, whose secret is returned once here and can be fetched once within ten minutes. With `endsAt` the service removes the tenant automatically, like DELETE: for trials and demonstrations.
     *
     *     Requires one of the roles: `tenants:manage`.
     */
    post: operations["createTenant"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/tenant/{id}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read a tenant
     * @description Requires one of the roles: `tenants:manage`.
     */
    get: operations["getTenant"];
    put?: never;
    post?: never;
    /**
     * Delete a tenant and everything that is its own
     * @description The tenant is no longer served. Large amounts of data are removed in batches, also after this response, as `GET /tenant-removal` shows; its id can be used again when most data is removed.
     *
     *     Requires one of the roles: `tenants:manage`.
     */
    delete: operations["deleteTenant"];
    options?: never;
    head?: never;
    /**
     * Change a tenant
     * @description Omitted properties are unchanged; null for `sessionConfig` or `statusListConfig`, or for a property of them, restores the global default. `roles` replaces the roles of the client `<id>-admin`. A suspended tenant rejects requests of clients and wallets; its status lists stay published. With `endsAt` the service removes it automatically.
     *
     *     Requires one of the roles: `tenants:manage`.
     */
    patch: operations["updateTenant"];
    trace?: never;
  };
  "/tenant-removal": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List removed tenants whose data is still being removed
     * @description A tenant is in this list until all its data is deleted. `GET /tenant` does not list it.
     *
     *     Requires one of the roles: `tenants:manage`.
     */
    get: operations["listTenantRemovals"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/issuer/offer": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Offer credentials to a wallet
     * @description Requires one of the roles: `issuance:offer`, `issuance:manage`.
     */
    post: operations["createOffer"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/issuer/config": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read the issuance configuration
     * @description Requires one of the roles: `issuance:manage`.
     */
    get: operations["getIssuanceConfiguration"];
    put?: never;
    /**
     * Set how the tenant issues
     * @description Requires one of the roles: `issuance:manage`.
     *
     *     Not for clients that are restricted to some configurations.
     */
    post: operations["replaceIssuanceConfiguration"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/issuer/credentials": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List credential configurations
     * @description Requires one of the roles: `issuance:manage`.
     */
    get: operations["listCredentialConfigurations"];
    put?: never;
    /**
     * Create or replace a credential configuration
     * @description Requires one of the roles: `issuance:manage`.
     */
    post: operations["replaceCredentialConfiguration"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/issuer/credentials/{id}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read a credential configuration
     * @description Requires one of the roles: `issuance:manage`.
     */
    get: operations["getCredentialConfiguration"];
    put?: never;
    post?: never;
    /**
     * Delete a credential configuration
     * @description Requires one of the roles: `issuance:manage`.
     */
    delete: operations["deleteCredentialConfiguration"];
    options?: never;
    head?: never;
    /**
     * Change a credential configuration
     * @description Properties in the body replace the stored ones; null resets an optional property.
     *
     *     Requires one of the roles: `issuance:manage`.
     */
    patch: operations["updateCredentialConfiguration"];
    trace?: never;
  };
  "/issuer/deferred": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List deferred transactions, the newest first
     * @description By time of creation; the newest 500 are listed.
     *
     *     Requires one of the roles: `issuance:offer`, `issuance:manage`.
     */
    get: operations["listDeferredTransactions"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/issuer/deferred/{transactionId}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read a deferred transaction
     * @description Requires one of the roles: `issuance:offer`, `issuance:manage`.
     */
    get: operations["getDeferredTransaction"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/issuer/deferred/{transactionId}/complete": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Supply a deferred credential
     * @description As credentials of the backend, or as claims that the service signs. The wallet gets it with its next request. For credentials of the backend, warnings list what the wallet will reject: another format, a number that differs from that of its keys, another key.
     *
     *     Requires one of the roles: `issuance:offer`, `issuance:manage`.
     */
    post: operations["completeDeferredTransaction"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/issuer/deferred/{transactionId}/fail": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Reject a deferred credential
     * @description Requires one of the roles: `issuance:offer`, `issuance:manage`.
     */
    post: operations["failDeferredTransaction"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/verifier/offer": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Request a presentation from a wallet
     * @description Requires one of the roles: `presentation:request`, `presentation:manage`.
     */
    post: operations["createPresentationRequest"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/verifier/config": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List the presentation configurations
     * @description A restricted client sees the configurations that it may use.
     *
     *     Requires one of the roles: `presentation:manage`, `presentation:request`.
     */
    get: operations["listPresentationConfigurations"];
    put?: never;
    /**
     * Create or replace a presentation configuration
     * @description Credentials are only accepted under `trustAnchors`; without an anchor none is; `{"keyChainId":"signing"}` is the certificate under which this tenant issues. Trust lists among them are fetched: `warnings` lists each unusable one with the reason, and an address of another document is rejected with 400. An API key `***` of a webhook keeps the stored key while address and header are unchanged.
     *
     *     Requires one of the roles: `presentation:manage`.
     */
    post: operations["replacePresentationConfiguration"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/verifier/config/{id}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read a presentation configuration
     * @description Requires one of the roles: `presentation:manage`, `presentation:request`.
     */
    get: operations["getPresentationConfiguration"];
    put?: never;
    post?: never;
    /**
     * Remove a presentation configuration
     * @description Requires one of the roles: `presentation:manage`.
     */
    delete: operations["deletePresentationConfiguration"];
    options?: never;
    head?: never;
    /**
     * Change a presentation configuration
     * @description Properties are replaced as a whole; null resets a property to its default.
     *
     *     Requires one of the roles: `presentation:manage`.
     */
    patch: operations["updatePresentationConfiguration"];
    trace?: never;
  };
  "/verifier/config/{id}/try": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Try a presentation configuration with a presentation
     * @description Returns which credential queries a pasted presentation satisfies: signature and trust in its issuer, status, validity and claims are checked as for a response. The binding to a request and to its holder is not checked (`untried`), so it is never accepted as a response. Nothing is stored; claims are returned as paths.
     *
     *     Requires one of the roles: `presentation:manage`.
     */
    post: operations["tryPresentation"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/session/revoke": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Revoke, suspend or reinstate the credentials of a session
     * @description Requires one of the roles: `issuance:manage`, `issuance:offer`.
     */
    post: operations["revokeCredentials"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/session/{id}/statuses": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Status list of the credentials of a session
     * @description An entry for each credential with a status, by default the oldest first, also of a deleted session. Lists that no longer exist are omitted. The `Link` header with `rel="next"` is the address of the next page.
     *
     *     Requires one of the roles: `issuance:manage`, `issuance:offer`.
     */
    get: operations["listSessionStatuses"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/credentials/revoke-by-subject": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Revoke all credentials of one subject
     * @description Credentials of configurations with `subjectClaims`, of all sessions; suspended ones, too. The claims that identify the subject are compared by a keyed hash and not stored. A call revokes the credentials of 50 sessions; a job revokes the rest within a minute, and `pending` is the number of remaining sessions. Credentials that were issued before the configuration had `subjectClaims` are not found.
     *
     *     Requires one of the roles: `issuance:manage`, `issuance:offer`.
     */
    post: operations["revokeCredentialsBySubject"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/session/rates": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Count sessions by outcome
     * @description Only kinds of the roles of the caller, without session contents. Each part contains its number of sessions, and whether it covers the whole period: for a busy tenant only the newest are counted.
     *
     *     Requires one of the roles: `issuance:manage`, `issuance:offer`, `presentation:manage`, `presentation:request`.
     */
    get: operations["countSessions"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/session": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List sessions
     * @description Default order: the newest first. The `Link` header with `rel="next"` is the address of the next page. A page may contain fewer than `limit` sessions, or none: for large sessions, or a filter that few sessions match. The last page has no link.
     *
     *     Requires one of the roles: `issuance:manage`, `issuance:offer`, `presentation:manage`, `presentation:request`.
     */
    get: operations["listSessions"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/session/{id}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read a session
     * @description Requires one of the roles: `issuance:manage`, `issuance:offer`, `presentation:manage`, `presentation:request`.
     */
    get: operations["getSession"];
    put?: never;
    post?: never;
    /**
     * Delete a session
     * @description Deletes the session with all its data, and the right to renew its credentials. `GET` then returns 404, and its offer or request ends for the wallet, too: 404 at its link and for a response, `invalid_grant` for the code. Credentials that were issued stay valid; `POST /session/revoke` accepts the id of the session also afterwards.
     *
     *     Requires one of the roles: `issuance:manage`, `issuance:offer`, `presentation:manage`, `presentation:request`.
     */
    delete: operations["deleteSession"];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/session/{id}/show": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Read a session with personal data
     * @description The whole session, after an audit log entry with the caller was written. For clients that use `values=masked` otherwise; if the entry cannot be written, nothing is returned.
     *
     *     Requires one of the roles: `issuance:manage`, `issuance:offer`, `presentation:manage`, `presentation:request`.
     */
    post: operations["showSession"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/session/{id}/cancel": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Cancel a session
     * @description Cancels an offer or a request: afterwards it can no longer be redeemed, issued or answered, and the session is `failed` with the code `cancelled`. Exactly one of the wallet and this call succeeds. Credentials that were issued before stay valid; `POST /session/revoke` revokes them.
     *
     *     Requires one of the roles: `issuance:manage`, `issuance:offer`, `presentation:manage`, `presentation:request`.
     */
    post: operations["cancelSession"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/session/{id}/deliveries/{deliveryId}/retry": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Repeat a delivery to a webhook
     * @description The same delivery with the same `Idempotency-Key`, once: one that failed, or that has been pending for a minute. The response contains its result; the session is unchanged. Claims are not requested again, because the wallet no longer waits for them.
     *
     *     Requires one of the roles: `issuance:manage`, `issuance:offer`, `presentation:manage`, `presentation:request`.
     */
    post: operations["retryDelivery"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/session/{id}/events": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Follow the status of a session
     * @description Server-sent events. The present status is sent immediately, then every change; the stream ends with the session, and when the access token expires: reconnect with a new one. `Last-Event-ID` returns the missed changes.
     *
     *     Requires one of the roles: `issuance:manage`, `issuance:offer`, `presentation:manage`, `presentation:request`.
     */
    get: operations["watchSession"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/session-config": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read the session retention
     * @description Requires one of the roles: `issuance:manage`, `presentation:manage`.
     */
    get: operations["getSessionStorage"];
    /**
     * Set how long sessions are kept
     * @description Omitted properties are unchanged; `ttlSeconds: null` restores the global default.
     *
     *     Requires one of the roles: `issuance:manage`, `presentation:manage`.
     *
     *     Not for clients that are restricted to some configurations.
     */
    put: operations["replaceSessionStorage"];
    post?: never;
    /**
     * Reset to the global defaults
     * @description Requires one of the roles: `issuance:manage`, `presentation:manage`.
     *
     *     Not for clients that are restricted to some configurations.
     */
    delete: operations["resetSessionStorage"];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/client": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List the clients of the tenant
     * @description Requires one of the roles: `clients:manage`.
     */
    get: operations["listClients"];
    put?: never;
    /**
     * Create a client
     * @description The secret, given or generated, can be fetched once within ten minutes: `GET /client/{id}/secret`.
     *
     *     Requires one of the roles: `clients:manage`.
     */
    post: operations["createClient"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/client/{id}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read a client
     * @description Requires one of the roles: `clients:manage`.
     */
    get: operations["getClient"];
    put?: never;
    post?: never;
    /**
     * Delete a client
     * @description Requires one of the roles: `clients:manage`.
     */
    delete: operations["deleteClient"];
    options?: never;
    head?: never;
    /**
     * Change a client
     * @description Rights change immediately, also those of issued tokens. Only clients whose roles and configurations are within those of the caller are changed, and deleted.
     *
     *     Requires one of the roles: `clients:manage`.
     */
    patch: operations["updateClient"];
    trace?: never;
  };
  "/client/{id}/secret": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Fetch a new secret, once
     * @description Within ten minutes of the creation of the client, by the role that created it. Afterwards 410: rotate it.
     *
     *     Requires one of the roles: `clients:manage`, `tenants:manage`.
     */
    get: operations["getClientSecret"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/client/{id}/rotate-secret": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Replace the secret
     * @description The new secret is returned here, once. Access tokens of the former secret end immediately, or with `graceSeconds` after that time. `tenants:manage` may do this for any client.
     *
     *     Requires one of the roles: `clients:manage`, `tenants:manage`.
     */
    post: operations["rotateClientSecret"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/key-chain": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List the key chains of the tenant
     * @description Requires one of the roles: `issuance:manage`, `presentation:manage`.
     */
    get: operations["listKeyChains"];
    put?: never;
    /**
     * Create a key chain
     * @description Creates a key, an internal authority for it unless another one is named, and its certificate.
     *
     *     Requires one of the roles: `issuance:manage`, `presentation:manage`.
     *
     *     Not for clients that are restricted to some configurations.
     */
    post: operations["createKeyChain"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/key-chain/providers": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List the key providers
     * @description Requires one of the roles: `issuance:manage`, `presentation:manage`.
     */
    get: operations["listKeyProviders"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/key-chain/{id}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read a key chain
     * @description Requires one of the roles: `issuance:manage`, `presentation:manage`.
     */
    get: operations["getKeyChain"];
    put?: never;
    post?: never;
    /**
     * Delete a key chain
     * @description Requires one of the roles: `issuance:manage`, `presentation:manage`.
     *
     *     Not for clients that are restricted to some configurations.
     */
    delete: operations["deleteKeyChain"];
    options?: never;
    head?: never;
    /**
     * Change a key chain
     * @description Requires one of the roles: `issuance:manage`, `presentation:manage`.
     *
     *     Not for clients that are restricted to some configurations.
     */
    patch: operations["updateKeyChain"];
    trace?: never;
  };
  "/key-chain/import": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Import an external key
     * @description With `certificates`: an external authority issued them for the key. Without: an internal authority certifies the key. The key is sealed and never shown again.
     *
     *     Requires one of the roles: `issuance:manage`, `presentation:manage`.
     *
     *     Not for clients that are restricted to some configurations.
     */
    post: operations["importKeyChain"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/key-chain/{id}/rotate": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Rotate the key of a key chain
     * @description The previous key is published until everything that it signed has expired. With `provider`, this and all later keys are created there; the authority stays the same. With `compromised`, the public key is removed from every key chain of the tenant that has or had it: `affectedKeyChains` lists them.
     *
     *     Requires one of the roles: `issuance:manage`, `presentation:manage`.
     *
     *     Not for clients that are restricted to some configurations.
     */
    post: operations["rotateKeyChain"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/key-chain/{id}/csr": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Create a certificate signing request
     * @description Upload the certificate with PATCH /key-chain/{id}; it is for the presently active key.
     *
     *     Requires one of the roles: `issuance:manage`, `presentation:manage`.
     *
     *     Not for clients that are restricted to some configurations.
     */
    post: operations["createKeyChainRequest"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/certs": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List the certificates of the tenant
     * @description Requires one of the roles: `issuance:manage`, `presentation:manage`.
     */
    get: operations["listCertificates"];
    put?: never;
    /**
     * Give a key another certificate
     * @description With `crt`: certificates obtained elsewhere for this key. Without: the internal authority of the key issues one. It is never self-signed, since wallets reject that. `certUsageTypes` may differ from those of the key; if access shares an authority with them, the response has a warning, and the profile `eu` rejects it.
     *
     *     Requires one of the roles: `issuance:manage`, `presentation:manage`.
     *
     *     Not for clients that are restricted to some configurations.
     */
    post: operations["createCertificate"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/certs/{certId}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read a certificate
     * @description Requires one of the roles: `issuance:manage`, `presentation:manage`.
     */
    get: operations["getCertificate"];
    put?: never;
    post?: never;
    /**
     * Delete a certificate
     * @description The key is deleted with its last certificate.
     *
     *     Requires one of the roles: `issuance:manage`, `presentation:manage`.
     *
     *     Not for clients that are restricted to some configurations.
     */
    delete: operations["deleteCertificate"];
    options?: never;
    head?: never;
    /**
     * Change a certificate
     * @description With `crt`: certificates of an external authority replace the present ones. The key stays.
     *
     *     Requires one of the roles: `issuance:manage`, `presentation:manage`.
     *
     *     Not for clients that are restricted to some configurations.
     */
    patch: operations["updateCertificate"];
    trace?: never;
  };
  "/certs/{certId}/csr": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Create a certificate signing request
     * @description The key signs a request for a certificate of an external authority.
     *
     *     Requires one of the roles: `issuance:manage`, `presentation:manage`.
     *
     *     Not for clients that are restricted to some configurations.
     */
    post: operations["createCertificateRequest"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/key": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List the keys of the tenant
     * @description Requires one of the roles: `issuance:manage`, `presentation:manage`.
     */
    get: operations["listKeys"];
    put?: never;
    /**
     * Create or import a key
     * @description It signs nothing until POST /certs creates certificates for it, unless `usages` is set.
     *
     *     Requires one of the roles: `issuance:manage`, `presentation:manage`.
     *
     *     Not for clients that are restricted to some configurations.
     */
    post: operations["createKey"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/key/{id}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read a key
     * @description Requires one of the roles: `issuance:manage`, `presentation:manage`.
     */
    get: operations["getKey"];
    put?: never;
    post?: never;
    /**
     * Delete a key and its certificates
     * @description Requires one of the roles: `issuance:manage`, `presentation:manage`.
     *
     *     Not for clients that are restricted to some configurations.
     */
    delete: operations["deleteKey"];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/status-lists": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List the status lists
     * @description Requires one of the roles: `issuance:manage`.
     */
    get: operations["listStatusLists"];
    put?: never;
    /**
     * Create a status list
     * @description Default parameters: those of `GET /status-list-config`. With `credentialConfigurationId` only credentials of that configuration get entries, and they use this list first. There may be 100 unused lists.
     *
     *     Requires one of the roles: `issuance:manage`.
     *
     *     Not for clients that are restricted to some configurations.
     */
    post: operations["createStatusList"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/status-lists/{listId}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read a status list
     * @description Requires one of the roles: `issuance:manage`.
     */
    get: operations["getStatusList"];
    put?: never;
    post?: never;
    /**
     * Delete a status list that no credential uses
     * @description Requires one of the roles: `issuance:manage`.
     *
     *     Not for clients that are restricted to some configurations.
     */
    delete: operations["deleteStatusList"];
    options?: never;
    head?: never;
    /**
     * Change the configuration and the signer of a status list
     * @description Credentials that use the list keep their entries. Omitted properties are unchanged; null shares the list, or lets the default of the tenant sign it.
     *
     *     Requires one of the roles: `issuance:manage`.
     *
     *     Not for clients that are restricted to some configurations.
     */
    patch: operations["updateStatusList"];
    trace?: never;
  };
  "/status-list-config": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read the parameters of new status lists
     * @description Requires one of the roles: `issuance:manage`.
     */
    get: operations["getStatusListDefaults"];
    /**
     * Set the shape of new status lists
     * @description Omitted properties are unchanged; null restores the global default. Existing lists keep their parameters.
     *
     *     Requires one of the roles: `issuance:manage`.
     *
     *     Not for clients that are restricted to some configurations.
     */
    put: operations["replaceStatusListDefaults"];
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/trust-list": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List the trust lists
     * @description Requires one of the roles: `issuance:manage`, `presentation:manage`.
     */
    get: operations["listTrustLists"];
    put?: never;
    /**
     * Publish a trust list
     * @description The list is composed of the entities, signed and published at `/{tenant}/trust-list/{id}`. An internal entity is listed with the CA of its key chains, an external one with the certificates of the request. `data` contains scheme information in the structure of the document; its numbers, times and entities are written by the service and rejected in the request.
     *
     *     Requires one of the roles: `issuance:manage`.
     *
     *     Not for clients that are restricted to some configurations.
     */
    post: operations["createTrustList"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/trust-list/{id}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read a trust list
     * @description Requires one of the roles: `issuance:manage`, `presentation:manage`.
     */
    get: operations["getTrustList"];
    /**
     * Replace a trust list
     * @description Requires one of the roles: `issuance:manage`.
     *
     *     Not for clients that are restricted to some configurations.
     */
    put: operations["replaceTrustList"];
    post?: never;
    /**
     * Delete a published trust list
     * @description A later list with this id continues from its last sequence number.
     *
     *     Requires one of the roles: `issuance:manage`.
     *
     *     Not for clients that are restricted to some configurations.
     */
    delete: operations["deleteTrustList"];
    options?: never;
    head?: never;
    /**
     * Change a trust list
     * @description Properties are replaced as a whole; null resets a property to its default. An empty change signs the list again.
     *
     *     Requires one of the roles: `issuance:manage`.
     *
     *     Not for clients that are restricted to some configurations.
     */
    patch: operations["updateTrustList"];
    trace?: never;
  };
  "/trust-list/{id}/export": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read a trust list in the format of a write
     * @description Requires one of the roles: `issuance:manage`, `presentation:manage`.
     */
    get: operations["exportTrustList"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/trust-list/{id}/versions": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List the former versions of a trust list
     * @description Default order: the newest first, without the present version; the latest 50 are kept. The `Link` header with `rel="next"` is the address of the next page; a page of large lists contains fewer than `limit`.
     *
     *     Requires one of the roles: `issuance:manage`, `presentation:manage`.
     */
    get: operations["listTrustListVersions"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/trust-list/{id}/versions/{versionId}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read a former version of a trust list
     * @description Requires one of the roles: `issuance:manage`, `presentation:manage`.
     */
    get: operations["getTrustListVersion"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/trust/lists": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List followed trust lists and their problems
     * @description Lists that require an operator first. At most 500, in all processes.
     *
     *     Requires one of the roles: `issuance:manage`, `presentation:manage`.
     *
     *     Not for clients that are restricted to some configurations.
     */
    get: operations["listFollowedTrustLists"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/trust/lists/{id}/confirm-signer": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Confirm the new signer of a trust list
     * @description The waiting certificate is added to the signers in every configuration that uses the list with its present signers. It requires the roles for writing these configurations.
     *
     *     Requires one of the roles: `issuance:manage`, `presentation:manage`.
     *
     *     Not for clients that are restricted to some configurations.
     */
    post: operations["confirmTrustListSigner"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/trust/forecast": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List expiry dates and their consequences
     * @description Certificates and authorities of the tenant, followed and published trust lists, their signers, anchors and registration certificates, the earliest expiry first. Each role sees the objects of its configurations. The `Link` header with `rel="next"` is the address of the next page, and `X-Total-Count` is the number on all pages.
     *
     *     Requires one of the roles: `issuance:manage`, `presentation:manage`.
     *
     *     Not for clients that are restricted to some configurations.
     */
    get: operations["forecastTrust"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/registrar/config": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read the login at the registrar
     * @description Secrets are never shown.
     *
     *     Requires one of the roles: `registrar:manage`.
     */
    get: operations["getRegistrarConfiguration"];
    put?: never;
    /**
     * Create or replace the login at the registrar
     * @description The login is tested before it is stored. It is a password grant (RFC 6749 section 4.3) at the OpenID provider of the registrar. Below `registrarUrl` the service calls `GET /relying-parties`, `POST /access-certificates` (`rpId`, `dns`, `publicKey`; answered by `id` and `crt`), `POST /registration-certificates` and `GET /registration-certificates/{id}` (answered by `id` and `jwt`, an `rc-wrp+jwt` of ETSI TS 119 475).
     *
     *     Requires one of the roles: `registrar:manage`.
     *
     *     Not for clients that are restricted to some configurations.
     */
    post: operations["replaceRegistrarConfiguration"];
    /**
     * Remove the login at the registrar
     * @description Requires one of the roles: `registrar:manage`.
     *
     *     Not for clients that are restricted to some configurations.
     */
    delete: operations["deleteRegistrarConfiguration"];
    options?: never;
    head?: never;
    /**
     * Change the login at the registrar
     * @description Null resets an optional property. Omitted secrets are kept, unless an address or the account changes: then they are required. The result is tested before it is stored.
     *
     *     Requires one of the roles: `registrar:manage`.
     *
     *     Not for clients that are restricted to some configurations.
     */
    patch: operations["updateRegistrarConfiguration"];
    trace?: never;
  };
  "/registrar/access-certificate": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Obtain an access certificate for a key chain
     * @description New requests to wallets are signed with it; open requests keep the previous one.
     *
     *     Requires one of the roles: `registrar:manage`.
     *
     *     Not for clients that are restricted to some configurations.
     */
    post: operations["orderAccessCertificate"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/registrar/registration-certificate": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Obtain a registration certificate
     * @description Presentation configurations obtain their certificates automatically (`registrationCert`). This call issues one manually, looks one up, or checks one of another source.
     *
     *     Requires one of the roles: `registrar:manage`.
     */
    post: operations["orderRegistrationCertificate"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/webhook-secret": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read the signature settings of webhooks
     * @description Secrets are never shown; rotate a lost secret.
     *
     *     Requires one of the roles: `issuance:manage`, `presentation:manage`.
     */
    get: operations["getWebhookSecret"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    /**
     * Enable or disable the signatures of webhooks
     * @description Requires both roles. By default every call is signed. Without signatures, backends can only check the API key of a webhook, and nothing for the `callbackUrl` of a web step.
     *
     *     Requires one of the roles: `issuance:manage`, `presentation:manage`.
     *
     *     Not for clients that are restricted to some configurations.
     */
    patch: operations["updateWebhookSecret"];
    trace?: never;
  };
  "/webhook-secret/rotate": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Rotate the webhook secret
     * @description Requires both roles. The new secret is returned here, once. Until the end of the overlap calls have a signature of each secret; there are at most 3 former ones, and the oldest ends early. This does not enable signatures.
     *
     *     Requires one of the roles: `issuance:manage`, `presentation:manage`.
     *
     *     Not for clients that are restricted to some configurations.
     */
    post: operations["rotateWebhookSecret"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/cache/stats": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read statistics of the cache of external lists
     * @description Copies of the process that answers; each process has its own.
     *
     *     Requires one of the roles: `issuance:manage`, `presentation:manage`.
     */
    get: operations["getCacheStatistics"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/cache": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post?: never;
    /**
     * Clear the cache of external lists
     * @description The next check fetches them.
     *
     *     Requires one of the roles: `issuance:manage`, `presentation:manage`.
     *
     *     Not for clients that are restricted to some configurations.
     */
    delete: operations["clearCaches"];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/cache/trust-list": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post?: never;
    /**
     * Clear the cache of external trust lists
     * @description The next check fetches them.
     *
     *     Requires one of the roles: `issuance:manage`, `presentation:manage`.
     *
     *     Not for clients that are restricted to some configurations.
     */
    delete: operations["clearTrustListCache"];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/cache/status-list": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post?: never;
    /**
     * Clear the cache of external status lists
     * @description The next check fetches them.
     *
     *     Requires one of the roles: `issuance:manage`, `presentation:manage`.
     *
     *     Not for clients that are restricted to some configurations.
     */
    delete: operations["clearStatusListCache"];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/audit-log": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read the audit log
     * @description Every administrative change, including revocations. Default order: the newest first. `clients:manage` reads the log of its tenant; `tenants:manage` that of the service, which repeats the changes of tenants by accounts without tenant, or with `tenant` that of a tenant. The `Link` header with `rel="next"` leads to the next page. `npm run audit:verify` finds what was altered or removed in the database.
     *
     *     Requires one of the roles: `clients:manage`, `tenants:manage`.
     */
    get: operations["listAuditEntries"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/audit-log/verification": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Verify the audit log
     * @description Up to 2,000 entries in one call, from the oldest stored one, for clients that may read the log; call again with `next` as `cursor` until `status` is `whole` or `broken`. Manipulations that the database alone cannot show, such as a log that was restored as a whole, are found by `npm run audit:verify` with `--expect`.
     *
     *     Requires one of the roles: `clients:manage`, `tenants:manage`.
     */
    get: operations["verifyAuditLog"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Name and version of the service */
    get: operations["getService"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/health": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * State of the service and its dependencies
     * @description Needs no token. With the token of a client that manages tenants, each key provider is listed as `key-provider/<name>`; otherwise all of them are one part, `key-providers`.
     */
    get: operations["getHealth"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/health/live": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Liveness: the process responds; dependencies are not checked */
    get: operations["getLiveness"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/health/ready": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Readiness: the process accepts requests */
    get: operations["getReadiness"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/settings": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read the settings of the service
     * @description All settings of docs/reference/settings.md, by default in its order, with the values of the start of this process; for secrets only whether they are set. Settings are changed in the environment, and apply from the next start on.
     *
     *     Requires one of the roles: `tenants:manage`.
     */
    get: operations["listSettings"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/console": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** The console, as a page */
    get: operations["getConsole"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/console/{file}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** A file of the console */
    get: operations["getConsoleFile"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/openapi.json": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** This description (OpenAPI 3.1) */
    get: operations["getApiDocument"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/docs": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** This description as a page */
    get: operations["getApiPage"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/docs/{file}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** A file of the page */
    get: operations["getApiPageFile"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/deferred_credential": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Fetch a deferred credential by the protocol before OpenID4VCI 1.0
     * @description Answers 400 `issuance_pending` with an `interval` until the credential is ready.
     */
    get: operations["pollDeferredCredential"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
}
export interface webhooks {
  claims: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Claims for a credential that a wallet requests
     * @description `claimsWebhook` of a credential configuration, or a source of type `webhook` in `credentialClaims` of an offer.
     *
     *     A failure, and claims that do not match schema and format, fail the session with `claims_unavailable` and a reason; the wallet gets `credential_request_denied` without a reason, and the backend is not called again. In an SD-JWT VC the claims that the issuer sets itself (`iss`, `iat`, `exp`, `cnf`, `vct`, `status`, …) are rejected.
     *
     *     With `auth` the header that it names carries its value; without, the signature alone says who calls.
     *
     *     One `POST` of JSON, never retried automatically. The response must be a 2xx, complete within 10 seconds, at most 1 MiB; redirects are not followed. The address is public https or allowed by `OUTBOUND_ALLOW`. Anything else is a failure, and so is a body that is not JSON when it is required: for claims, and in interactive authorizations.
     *
     *     It is signed (Standard Webhooks) with the secret of `POST /webhook-secret/rotate`, unless the tenant has disabled signatures; then the three headers are absent.
     */
    post: operations["claimsWebhook"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  notification: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Notification about a credential in the wallet
     * @description `notifyWebhook` of an offer, otherwise `notificationWebhook` of the credential configuration. A repeated notification is delivered once. An offer that becomes invalid before any credential was issued is a `credential_failure` of each of its credentials, under the id of the delivery.
     *
     *     A failure is recorded in `deliveries` of the session and changes nothing else; the wallet is not notified.
     *
     *     With `auth` the header that it names carries its value; without, the signature alone says who calls.
     *
     *     One `POST` of JSON, never retried automatically. The response must be a 2xx, complete within 10 seconds, at most 1 MiB; redirects are not followed. The address is public https or allowed by `OUTBOUND_ALLOW`. Anything else is a failure, and so is a body that is not JSON when it is required: for claims, and in interactive authorizations.
     *
     *     It is signed (Standard Webhooks) with the secret of `POST /webhook-secret/rotate`, unless the tenant has disabled signatures; then the three headers are absent.
     */
    post: operations["notificationWebhook"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  presentation: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Presentation of a wallet
     * @description `webhook` of a presentation configuration or of a request. Called with `error` and without any `values` for a rejected response.
     *
     *     A failure fails the session with `webhook_failed`, and the response of the wallet is rejected. In an interactive authorization the wallet gets `access_denied` and must begin again. A failed delivery of a rejection changes nothing.
     *
     *     With `auth` the header that it names carries its value; without, the signature alone says who calls.
     *
     *     One `POST` of JSON, never retried automatically. The response must be a 2xx, complete within 10 seconds, at most 1 MiB; redirects are not followed. The address is public https or allowed by `OUTBOUND_ALLOW`. Anything else is a failure, and so is a body that is not JSON when it is required: for claims, and in interactive authorizations.
     *
     *     It is signed (Standard Webhooks) with the secret of `POST /webhook-secret/rotate`, unless the tenant has disabled signatures; then the three headers are absent.
     */
    post: operations["presentationWebhook"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  webStep: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Confirmation that the user has completed a page before an issuance
     * @description `callbackUrl` of an interactive action of type `redirect_to_web`. Any 2xx confirms it.
     *
     *     After a failure the wallet gets `access_denied` and must begin again; the session stays open and its report contains the reason.
     *
     *     The call contains no API key; `auth_session` is known only to the service, the page and its visitor.
     *
     *     One `POST` of JSON, never retried automatically. The response must be a 2xx, complete within 10 seconds, at most 1 MiB; redirects are not followed. The address is public https or allowed by `OUTBOUND_ALLOW`. Anything else is a failure, and so is a body that is not JSON when it is required: for claims, and in interactive authorizations.
     *
     *     It is signed (Standard Webhooks) with the secret of `POST /webhook-secret/rotate`, unless the tenant has disabled signatures; then the three headers are absent.
     */
    post: operations["webStepWebhook"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
}
export interface components {
  schemas: {
    AccessTokenRequest: {
      /** @description `client_credentials` */
      grant_type: string;
      client_id?: string;
      client_secret?: string;
    };
    ConsoleTicket: {
      /** @description Ticket of the link that the start printed */
      ticket: string;
    };
    TenantCreation: {
      /** @description First segment of all its addresses for wallets; never changes */
      id: string;
      /** @description For administrators; wallets show `display` of the issuer */
      name: string;
      /** @description For administrators */
      description?: string | null;
      /** @description Roles of the client `<tenant>-admin`, which is created with them; its secret is shown once */
      roles?: components["schemas"]["Role"][];
      /** @description Retention of sessions */
      sessionConfig?: components["schemas"]["SessionStorageConfig"] | null;
      /** @description Parameters of new status lists */
      statusListConfig?: components["schemas"]["StatusListConfig"] | null;
      /** @description Provider of its next keys, one of `GET /key-chain/providers`; null: the one of `KMS_CONFIG`. Existing keys stay at their provider */
      kms?: string | null;
      /** @description Profile whose rules apply to the tenant. `haip`: OpenID4VC High Assurance Interoperability Profile 1.0 and the FAPI 2.0 rules that it references. `eu`: these, and the rules of the European Digital Identity Wallet (ARF 3.0). The rules override the configuration, and a configuration that violates them is rejected */
      profile?: ("haip" | "eu") | null;
      /** @description Time at which the tenant is removed with all its data, as by DELETE; from then on all its requests are rejected. At most ten years from now; null: never */
      endsAt?: string | null;
      /** @description Its legal name, in certificates that are issued from now on and in trust lists. Default: `name` */
      organization?: string | null;
      /** @description Its registered identifier (ETSI EN 319 412-1 section 5.1.4), such as `VATDE-123456789`, in access certificates that are issued from now on */
      organizationIdentifier?: string | null;
      /** @description Its country (ISO 3166-1), in certificates that are issued from now on; readers of driving licences require it */
      country?: string | null;
      /** @description Contact: a page, mail address (`mailto:`) or telephone number (`tel:`), in certificates that are issued from now on and in trust lists */
      contact?: string | null;
      /** @description Postal address, for trust lists */
      address?: components["schemas"]["TenantAddress"] | null;
    };
    /**
     * @description Rights of the client; `presentation:offer` is a former name of `presentation:request`
     * @enum {string}
     */
    Role: "presentation:manage" | "presentation:request" | "issuance:manage" | "issuance:offer" | "clients:manage" | "tenants:manage" | "registrar:manage";
    SessionStorageConfig: {
      /** @description Lifetime of a session in seconds. Default: `SESSION_TTL` */
      ttlSeconds?: number | null;
      /**
       * @description Treatment of ended sessions: removed, or stored without their requests and results
       * @enum {string}
       */
      cleanupMode?: "full" | "anonymize";
      /** @description Rules of wallets, verifiers or laws that the stored object violates */
      readonly warnings?: components["schemas"]["Warning"][];
    };
    StatusListConfig: {
      /** @description Entries of a list. Default: `STATUS_CAPACITY` */
      capacity?: number | null;
      /** @description Bits per entry: 1 for valid and revoked, 2 or more also for suspended. Default: `STATUS_BITS` */
      bits?: (1 | 2 | 4 | 8) | null;
      /** @description Validity of a list token in seconds. Default: `STATUS_TTL` */
      ttl?: number | null;
      /** @description Publishes changes immediately; otherwise when the published token expires */
      immediateUpdate?: boolean | null;
      /** @description Lists the addresses in one document. Default: true */
      enableAggregation?: boolean | null;
      /** @description Rules of wallets, verifiers or laws that the stored object violates */
      readonly warnings?: components["schemas"]["Warning"][];
    };
    TenantAddress: {
      streetAddress: string;
      locality?: string | null;
      stateOrProvince?: string | null;
      postalCode?: string | null;
      /** @description Default: that of the tenant */
      country?: string | null;
    };
    TenantUpdate: {
      /** @description For administrators; wallets show `display` of the issuer */
      name?: string;
      /** @description For administrators */
      description?: string | null;
      /**
       * @description Requests of clients and wallets of a suspended tenant are rejected; its status lists are still served
       * @enum {string}
       */
      status?: "active" | "suspended";
      /** @description Roles of the client `<tenant>-admin`, which is created with them; its secret is shown once */
      roles?: components["schemas"]["Role"][];
      /** @description Retention of sessions */
      sessionConfig?: components["schemas"]["SessionStorageConfig"] | null;
      /** @description Parameters of new status lists */
      statusListConfig?: components["schemas"]["StatusListConfig"] | null;
      /** @description Provider of its next keys, one of `GET /key-chain/providers`; null: the one of `KMS_CONFIG`. Existing keys stay at their provider */
      kms?: string | null;
      /** @description Profile whose rules apply to the tenant. `haip`: OpenID4VC High Assurance Interoperability Profile 1.0 and the FAPI 2.0 rules that it references. `eu`: these, and the rules of the European Digital Identity Wallet (ARF 3.0). The rules override the configuration, and a configuration that violates them is rejected */
      profile?: ("haip" | "eu") | null;
      /** @description Time at which the tenant is removed with all its data, as by DELETE; from then on all its requests are rejected. At most ten years from now; null: never */
      endsAt?: string | null;
      /** @description Its legal name, in certificates that are issued from now on and in trust lists. Default: `name` */
      organization?: string | null;
      /** @description Its registered identifier (ETSI EN 319 412-1 section 5.1.4), such as `VATDE-123456789`, in access certificates that are issued from now on */
      organizationIdentifier?: string | null;
      /** @description Its country (ISO 3166-1), in certificates that are issued from now on; readers of driving licences require it */
      country?: string | null;
      /** @description Contact: a page, mail address (`mailto:`) or telephone number (`tel:`), in certificates that are issued from now on and in trust lists */
      contact?: string | null;
      /** @description Postal address, for trust lists */
      address?: components["schemas"]["TenantAddress"] | null;
      readonly id?: string;
      /** Format: date-time */
      readonly createdAt?: string;
      /** Format: date-time */
      readonly updatedAt?: string;
      readonly clients?: {
        clientId: string;
        roles: components["schemas"]["Role"][];
        description: string | null;
        tenantId: string | null;
        tenant: components["schemas"]["TenantReference"] | null;
        /** @description Ids of the configurations that the client may use; empty or null means all */
        allowedPresentationConfigs: string[] | null;
        /** @description Ids of the configurations that the client may use; empty or null means all */
        allowedIssuanceConfigs: string[] | null;
        /** Format: date-time */
        createdAt: string;
        /** Format: date-time */
        updatedAt: string;
        /** @description Shown once, after its creation */
        secret?: string;
      }[];
      /** @description Rules of wallets, verifiers or laws that the stored object violates */
      readonly warnings?: components["schemas"]["Warning"][];
    };
    OfferRequest: {
      /**
       * @description `dc-api` adds the offer for the Digital Credentials API to the response
       * @enum {string}
       */
      response_type: "uri" | "dc-api";
      /**
       * @description `pre_authorized_code`: any holder of the offer, and of the transaction code if there is one, gets the credential. `authorization_code`: the wallet uses an authorization server first; the page of the built-in server asks for approval and authenticates no user
       * @enum {string}
       */
      flow: "authorization_code" | "pre_authorized_code";
      /** @description Ids of the offered credential configurations, each once; at least one (OpenID4VCI 1.0 section 4.1.1) */
      credentialConfigurationIds: string[];
      /** @description Source of the claims, by configuration id. The first existing source is used, without merging: inline claims or webhook here, `claimsWebhook` of the configuration, its static claims */
      credentialClaims?: {
        [key: string]: {
          /**
           * @description The claims themselves
           * @constant
           */
          type: "inline";
          /** @description The claims; validated immediately against schema and format */
          claims: {
            [key: string]: components["schemas"]["Json"];
          };
        } | {
          /**
           * @description Called when a wallet requests the credential
           * @constant
           */
          type: "webhook";
          /** @description See `claims` among the webhooks */
          webhook: {
            /** @description Public https, or an address that `OUTBOUND_ALLOW` names; redirects are not followed */
            url: string;
            /** @description Header with an API key; optional */
            auth?: {
              /** @constant */
              type: "apiKey";
              config: {
                /** @description Such as `Authorization`; no connection header, none that begins with `content-` or `webhook-` */
                headerName: string;
                /** @description The whole value of the header, such as `Bearer …`. Responses show `***`; written back for the same address and header, that keeps the stored value */
                value: string;
              };
            };
          };
        };
      };
      /** @description Transaction code that the user enters, for pre_authorized_code only: 1 to 256 characters, without control characters and without a space at either end, which wallets remove. Send it by another channel than the offer; the wallet gets its length and whether it consists of digits. After 5 wrong codes the offer becomes invalid, so four or more digits prevent guessing */
      tx_code?: string;
      /** @description Text for the user about the code, such as where it was sent */
      tx_code_description?: string;
      /** @description Issuer of the authorization server for the wallet: `<PUBLIC_URL>/<tenant>`, `<PUBLIC_URL>/<tenant>/chained-as` or one of `authServers`; with pre_authorized_code only the first. Default: the server that the tenant prefers, and for configurations with `iaeActions` the first */
      authorization_server?: string;
      /** @description Called for notifications about the credentials of this offer, instead of `notificationWebhook` of their configurations */
      notifyWebhook?: {
        /** @description Public https, or an address that `OUTBOUND_ALLOW` names; redirects are not followed */
        url: string;
        /** @description Header with an API key; optional */
        auth?: {
          /** @constant */
          type: "apiKey";
          config: {
            /** @description Such as `Authorization`; no connection header, none that begins with `content-` or `webhook-` */
            headerName: string;
            /** @description The whole value of the header, such as `Bearer …`. Responses show `***`; written back for the same address and header, that keeps the stored value */
            value: string;
          };
        };
      };
      /** @description URI that starts the wallet: openid-credential-offer:// (default), haip-vci://, or the address of your wallet */
      invocationUri?: string;
      /** @description Your reference for the session, such as an order number: `GET /session?q=` finds it. It need not be unique, and wallets never see it */
      reference?: string;
      /** @description Seconds until the offer expires; at most the lifetime of sessions of the tenant */
      expiresIn?: number;
    };
    IssuanceConfigurationInput: {
      /** @description Display of the issuer in wallets, by language; an empty list omits it */
      display: components["schemas"]["DisplayInfo"][];
      /** @description Further design of end-user pages; see docs/reference/pages-for-users.md */
      pages?: components["schemas"]["PageSettings"] | null;
      /** @description Key chain with the usage `signing` for access tokens of wallets. Default: the oldest one with this usage. Credentials are signed by `keyChainId` of their configuration */
      signingKeyId?: string | null;
      /** @description Maximum number of keys, and thus credentials, in one credential request; 0 and 1 allow one. Unless stated: `1` */
      batchSize?: number;
      /** @description Rejects access tokens that are not bound to a key (RFC 9449). Unless stated: `true` */
      dPopRequired?: boolean;
      /** @description Server nonces in DPoP proofs (RFC 9449 section 8). Default: `optional`, under a profile `required` */
      dPopNonce?: ("off" | "optional" | "required") | null;
      /** @description Rejects wallets without an attestation of a provider on `walletProviderTrustLists`, except `walletClients`. Without lists no attestation is accepted. Default: false, under a profile true */
      walletAttestationRequired?: boolean | null;
      /** @description Addresses of lists of trusted entities (ETSI TS 119 602) as compact JWS with `x5c` (JAdES baseline B-B), at most 2 MiB, used for an hour at most and never past `NextUpdate`. Certificates of services of the types `http://uri.etsi.org/19602/SvcType/WalletSolution/Issuance` and `…/WalletProvider` are trusted for wallet and key attestations, those of `…/WalletSolution/Revocation` of the same entity for their status; a service with a `ServiceStatus` is ignored. Unless stated: `[]` */
      walletProviderTrustLists?: string[];
      /** @description Allowed signers of these lists: the certificate of a signer or of its CA, one PEM each; a list that none of them certifies is not used. If it is absent, the lists are fetched when they are written, and their signers are stored here from then on. Lists of this service are signed by its own keys. Unless stated: `[]` */
      walletProviderTrustListCertificates?: string[];
      /** @description Accepted signature algorithms of wallets, their providers and registered clients: proofs and the keys that credentials are bound to, attestations, DPoP proofs and client assertions. Metadata list them. Default: all of them, under the profile `eu` all except `EdDSA`, which is not an agreed algorithm of the ECCG. The keys of the tenant are not affected */
      algorithms?: ("ES256" | "ES384" | "ES512" | "EdDSA")[] | null;
      /** @description Maximum age of a wallet attestation by its `iat`, which is then required. Default: until it expires */
      attestationMaxAgeSeconds?: number | null;
      /** @description Challenges of the challenge endpoint in proofs of possession of wallet attestations. Default: `required`, and always so under a profile. `optional` accepts a proof without a challenge: its `iat` must be at most five minutes old, and its `jti` is accepted once. A challenge in a proof is always verified */
      attestationChallenge?: ("required" | "optional") | null;
      /** @description Seconds for which wallet providers have to maintain the status of the wallet attestations that wallets send (`preferred_client_status_period` of the metadata, TS3 1.5 section 2.4); for credentials that follow that status, at least their lifetime. Default: the choice of the wallet */
      preferredClientStatusPeriod?: number | null;
      /** @description Wallets that authenticate only by `private_key_jwt` */
      walletClients?: components["schemas"]["WalletClient"][];
      /** @description Settings for single wallet providers on the lists. Unless stated: `[]` */
      walletProviders?: components["schemas"]["WalletProvider"][];
      /** @description The built-in authorization server */
      builtInAs?: {
        /** @description false: it is disabled. Metadata do not contain it, its endpoints return 404, and its access tokens become invalid. Offers by pre-authorized code and configurations with `iaeActions` require it. Unless stated: `true` */
        enabled?: boolean;
        /** @description Lets wallets begin without an offer. The page asks for approval without a login, so any user gets the credentials that have no `iaeActions`. At the chained and external servers wallets may always begin without an offer. Unless stated: `false` */
        walletInitiated?: boolean;
      } | null;
      /** @description Issuers of external authorization servers, exactly as in their metadata and tokens. Their access tokens are JWTs signed with a key that the server publishes, `typ` `at+jwt`, `JWT` or none, with `iss`, `exp`, `sub`, `aud` containing `<PUBLIC_URL>/<tenant>`, and `authorization_details` of type `openid_credential` or, without any, `scope`, which list the credentials that they cover; `cnf.jkt` binds them by DPoP; `issuer_state` identifies the offer. Symmetric algorithms and ID tokens are rejected. Unless stated: `[]` */
      authServers?: string[];
      /** @description A server where users log in at your OpenID provider; register `<PUBLIC_URL>/<tenant>/chained-as/callback` there. The claims webhook gets the claims of the login as `identity` */
      chainedAs?: components["schemas"]["ChainedAsConfig"] | null;
      /** @description Listed first in the metadata, since many wallets use the first one, and used by offers without a server. `built-in`, one of `authServers`, or the enabled chained server as `<PUBLIC_URL>/<tenant>/chained-as`. Default: external servers first, then the chained one, then the built-in one */
      preferredAuthServer?: string | null;
      /** @description The registration certificate of the issuer, by value in `issuer_info` of the metadata (ETSI TS 119 472-3 section 4.2.3): sent as jwt, or issued by the registrar of the tenant, with the role `registrar:manage`. It must cover every type that is issued; `provided_attestations` of body are derived from these by default. Required under the profile `eu` */
      registrationCert?: components["schemas"]["RegistrationCertificateRequest"] | null;
      /** @description Lifetime of refresh tokens, also beyond the session of the offer; claims of the offer are removed with that session. 0: no refresh tokens. Unless stated: `2592000` */
      refreshTokenSeconds?: number;
      /**
       * @description encrypted credential requests. Unless stated: `"optional"`
       * @enum {string}
       */
      requestEncryption?: "off" | "optional" | "required";
      /**
       * @description encrypted credential responses. Unless stated: `"optional"`
       * @enum {string}
       */
      responseEncryption?: "off" | "optional" | "required";
      readonly tenant?: components["schemas"]["TenantReference"];
      /** Format: date-time */
      readonly createdAt?: string;
      /** Format: date-time */
      readonly updatedAt?: string;
      /** @description Rules of wallets, verifiers or laws that the stored object violates */
      readonly warnings?: components["schemas"]["Warning"][];
    };
    DisplayInfo: {
      /** @description Name of the issuer as wallets show it */
      name: string;
      /** @description BCP 47, such as en or de-AT; each language at most once */
      locale?: string;
      /** @description Logo of the issuer */
      logo?: {
        /** @description https or data URL of an image */
        uri: string;
        /** @description Text alternative for screen readers */
        alt_text?: string;
      };
    };
    PageSettings: {
      /** @description Background of the header and of buttons, such as #12355b */
      backgroundColor?: string;
      /** @description Text colour on that background. Default: black or white. With a contrast below 4.5 to 1 pages use the default colours */
      textColor?: string;
      /** @description Address of your privacy notice. Default: `privacy_policy` of the registration certificate */
      privacyUri?: string;
      /** @description Address of your support. Default: `support_uri` of the registration certificate */
      supportUri?: string;
    };
    WalletClient: {
      /** @description Name of the wallet; `iss` and `sub` of its assertions. Requests with this name require an assertion */
      client_id: string;
      /** @description Its public keys: ES256, ES384, ES512 or EdDSA */
      jwks?: {
        keys: {
          [key: string]: components["schemas"]["Json"];
        }[];
      };
      /** @description URL of its key set, instead of `jwks` */
      jwks_uri?: string;
      /** @description The only `redirect_uri` values that it may use, compared exactly. Default: any, and the user is shown the target of the redirect */
      redirect_uris?: string[];
    } & (unknown | unknown);
    WalletProvider: {
      /** @description Certificates of the provider, one PEM each: the one on the trust list, or the one that signs its attestations */
      certificates: string[];
      /** @description Names of its wallets, `sub` of their attestations. An attestation of another provider with such a name is rejected */
      client_ids: string[];
      /** @description Redirect addresses of these wallets, compared exactly. The chained server redirects a browser to one of these without consent; for every other address the user is shown the target. The page of the built-in server always asks */
      redirect_uris?: string[];
    };
    ChainedAsConfig: {
      /** @description false: its addresses return 404 and its tokens are rejected. Unless stated: `true` */
      enabled?: boolean;
      /** @description the OpenID provider where users log in; register {PUBLIC_URL}/{tenant}/chained-as/callback there. The claims of its ID token, of its userinfo endpoint, and of its access token where that is a JWT of its own, reach the claims webhook as `identity.token_claims` */
      upstream: {
        /** @description found by OpenID Connect Discovery */
        issuer: string;
        /** @description client of this service at the provider */
        clientId: string;
        /** @description absent for a public client; PKCE is always used */
        clientSecret?: string;
        /** @description Unless stated: `["openid","profile"]` */
        scopes?: string[];
        /** @description false: its userinfo endpoint is not called. Default: it is called if it exists, and a login fails if it returns no claims of the same user, for example because access tokens are for another API */
        userinfo?: boolean;
      };
      /** @description Unless stated: `{"lifetimeSeconds":3600}` */
      token?: {
        /** @description of access tokens; tokens without key binding are valid for at most 300 seconds. Unless stated: `3600` */
        lifetimeSeconds?: number;
        /** @description key chain that signs access tokens. Default: that of the tenant */
        signingKeyId?: string | null;
      };
      /** @description false: access tokens without key binding are issued, too. Unless stated: `true` */
      requireDPoP?: boolean;
      /** @description asks users for consent after their login before a redirect to an address that is not registered for a wallet that authenticated (`walletClients`, `walletProviders`). If it is disabled, an attacker who sends a link to a user with a session at the upstream provider gets the credentials of that user without consent. Unless stated: `true` */
      confirmUnverifiedWallets?: boolean;
    };
    RegistrationCertificateRequest: {
      /** @description A certificate of another source */
      jwt?: string;
      /** @description A certificate that the registrar has issued */
      id?: string;
      /** @description A certificate to be issued, in a configuration with the role `registrar:manage`. `credentials` is derived from the query by default; `privacy_policy`, `support_uri` and `purpose` default to those of the registrar configuration, `purpose` primarily to `purpose` of the configuration */
      body?: {
        /** @description Address of the policy for users */
        privacy_policy?: string;
        support_uri?: string;
        /** @description Intermediary of the relying party, by its name at the registrar */
        intermediary?: string | {
          sub: string;
          sname?: string;
        };
        /** @description Purpose of the request, by language */
        purpose?: {
          lang: string;
          content: string;
        }[];
        credentials?: {
          format: string;
          meta: {
            [key: string]: components["schemas"]["Json"];
          };
          claims?: {
            path: (string | null | number)[];
          }[];
        }[];
        provided_attestations?: {
          format: string;
          meta: {
            [key: string]: components["schemas"]["Json"];
          };
        }[];
      };
    } & (unknown | unknown | unknown);
    CredentialConfigurationInput: {
      /** @description `credential_configuration_id` of wallets and offers */
      id: string;
      /** @description Published metadata of the credential, and its format */
      config: components["schemas"]["CredentialConfig"];
      /** @description For administrators, and in the metadata of a hosted type */
      description?: string | null;
      /** @description dc+sd-jwt: the type, or its metadata, which the service hosts if they name no type. The rules of the metadata for claims (`mandatory`, `sd`) apply to every credential */
      vct?: (string | components["schemas"]["TypeMetadata"]) | null;
      /** @description Writes the hash of the hosted metadata into credentials (`vct#integrity`). The document is kept as it is at that moment: its sources (vct, config.display, config.claims, frame, description, names of claims and schema) cannot be changed, nor the configuration deleted, until this is set to false; leaving it out keeps it. After that, wallets reject a changed document for issued credentials */
      vctIntegrity?: boolean | null;
      /** @description Static claims, the same for every holder; used if neither the offer nor `claimsWebhook` provides claims. mso_mdoc: elements, flat or keyed by namespace */
      claims?: {
        [key: string]: components["schemas"]["Json"];
      } | null;
      /** @description Called for the claims when a wallet requests the credential; see `claims` among the webhooks */
      claimsWebhook?: {
        /** @description Public https, or an address that `OUTBOUND_ALLOW` names; redirects are not followed */
        url: string;
        /** @description Header with an API key; optional */
        auth?: {
          /** @constant */
          type: "apiKey";
          config: {
            /** @description Such as `Authorization`; no connection header, none that begins with `content-` or `webhook-` */
            headerName: string;
            /** @description The whole value of the header, such as `Bearer …`. Responses show `***`; written back for the same address and header, that keeps the stored value */
            value: string;
          };
        };
      } | null;
      /** @description Called for notifications of the wallet about a credential, unless the offer has a `notifyWebhook`; see `notification` among the webhooks */
      notificationWebhook?: {
        /** @description Public https, or an address that `OUTBOUND_ALLOW` names; redirects are not followed */
        url: string;
        /** @description Header with an API key; optional */
        auth?: {
          /** @constant */
          type: "apiKey";
          config: {
            /** @description Such as `Authorization`; no connection header, none that begins with `content-` or `webhook-` */
            headerName: string;
            /** @description The whole value of the header, such as `Bearer …`. Responses show `***`; written back for the same address and header, that keeps the stored value */
            value: string;
          };
        };
      } | null;
      /** @description Steps of the user before the issuance, in this order, in an interactive authorization. A presentation requires the role `presentation:manage` or `presentation:request`. With any step, the credential is issued only in this way: not by pre-authorized code, pushed request or external server */
      iaeActions?: components["schemas"]["InteractiveAction"][] | null;
      /** @description `disclosure_policy` of the metadata: the relying parties that wallets may present it to; not enforced by the service */
      embeddedDisclosurePolicy?: components["schemas"]["DisclosurePolicy"] | null;
      /** @description dc+sd-jwt: claims that holders may withhold. `_sd` lists properties of an object or positions of an array; other names and positions contain to frames below; `_sd_decoy` is a number of decoy digests. Without a frame all claims are always visible. For example `{"_sd": ["name", "address"], "address": {"_sd": ["street"]}, "degrees": {"_sd": [0, 1], "0": {"_sd": ["year"]}}}` */
      disclosureFrame?: {
        [key: string]: components["schemas"]["Json"];
      } | null;
      /** @description Binds each credential to a key that the wallet proves; an mdoc is always bound. Unless stated: `true` */
      keyBinding?: boolean;
      /** @description at least one; default jwt, with keyAttestationsRequired both */
      proofTypes?: ("jwt" | "attestation")[];
      /** @description Keys require an attestation of a provider on `walletProviderTrustLists`; without lists none is accepted. Default under the profile `eu`: any attestation */
      keyAttestationsRequired?: {
        /** @description Accepted attack resistance of the key storage, such as `iso_18045_high`, at least one. Default: any */
        key_storage?: string[];
        /** @description Accepted attack resistance of the user authentication for the key, at least one. Default: any */
        user_authentication?: string[];
        /** @description Seconds for which wallet providers have to maintain the status of the attestation (TS3 1.5 section 2.4); for credentials that follow it, at least their lifetime. Default: the choice of the wallet */
        preferred_key_storage_status_period?: number;
      } | null;
      /** @description How often wallets present one copy, and how many copies they store (ETSI TS 119 472-3 section 4.2.4.2); `credential_reuse_policy` of the metadata. Its batch sizes replace `batchSize` of the issuer. Required under the profile `eu` */
      credentialReusePolicy?: components["schemas"]["CredentialReusePolicy"] | null;
      /** @description Key chain with the usage `signing` that signs it. Default: the oldest one with this usage */
      keyChainId?: string | null;
      /** @description Gives each credential an entry in a status list; credentials without an entry cannot be revoked. Unless stated: `false` */
      statusManagement?: boolean;
      /** @description Credentials follow their wallet: they expire before the time until which its provider maintains the status of the wallet and of its keys, and with statusManagement they are revoked when it revokes one of them. Default: true if attestations of wallets or keys are required; see docs/reference/wallet-attestations.md */
      followWalletStatus?: boolean | null;
      /** @description Maximum number of credential requests that one session (offer) answers with it, renewals included, for all wallets together. Default: 100. Further requests are denied */
      maxIssuances?: number | null;
      /** @description Claims that identify the subject of a credential, for `POST /credentials/revoke-by-subject`: paths such as `[["personal_administrative_number"]]`, for an mdoc namespace and element. A keyed hash of their values is stored while the credential is valid; credentials without these claims are not issued. Requires statusManagement */
      subjectClaims?: string[][] | null;
      /** @description The credentials of a new request revoke those of earlier requests of the session, so that a holder has one active set. Requires statusManagement, and a separate offer for each holder: wallets that share an offer revoke the credentials of each other */
      oneActiveSet?: boolean | null;
      /** @description seconds, from 60 to 100 years; without it an SD-JWT VC does not expire and an mdoc is valid for 90 days. It is never exceeded: the expiry is rounded down, to the day above two days and to the hour from two hours on; below, each copy expires earlier by a random part of up to a tenth */
      lifeTime?: number | null;
      /** @description JSON Schema 2020-12 that validates claims of every source. dc+sd-jwt: a text with `contentEncoding` `base64` is issued as a data URI of its `contentMediaType`; absent claims of the schema and the frame are replaced by decoys. References to other documents are rejected, as are more than 500 subschemas, 2,000 keywords, 64 levels, or 100 patterns of 10,000 characters together */
      schema?: {
        [key: string]: components["schemas"]["Json"];
      } | null;
      /** @description The former name of `keyChainId`. A request that has both with different values is rejected with 400 */
      certId?: string | null;
      /** @description Null: the default of the tenant signs */
      readonly keyChain?: components["schemas"]["KeyChain"] | null;
      /** @description Same value, under its former name */
      readonly cert?: components["schemas"]["Certificate"] | null;
      readonly tenant?: components["schemas"]["TenantReference"];
      /** Format: date-time */
      readonly createdAt?: string;
      /** Format: date-time */
      readonly updatedAt?: string;
      /** @description Rules of wallets, verifiers or laws that the stored object violates */
      readonly warnings?: components["schemas"]["Warning"][];
    } & unknown;
    CredentialConfig: {
      /**
       * @description SD-JWT VC or ISO mdoc
       * @enum {string}
       */
      format: "dc+sd-jwt" | "mso_mdoc";
      /** @description Display in wallets, by language; most wallets show the id of the configuration without one */
      display?: {
        /** @description Name of the credential as wallets show it */
        name: string;
        /** @description BCP 47, such as en or de-AT; each language at most once */
        locale?: string;
        /** @description For the user */
        description?: string;
        /** @description Such as #12355b */
        background_color?: string;
        /** @description Such as #ffffff */
        text_color?: string;
        /** @description Background colour of the card */
        background_image?: {
          /** @description https or data URL of an image */
          uri: string;
        };
        /** @description Text colour of the card */
        logo?: {
          /** @description https or data URL of an image */
          uri: string;
          /** @description Text alternative for screen readers */
          alt_text?: string;
        };
      }[];
      /** @description Value of `scope` in requests of wallets. Default: the id of the configuration. Configurations of one type may share it */
      scope?: string;
      /** @description claims in the metadata for wallets; mso_mdoc: paths begin with namespace and element */
      claims?: {
        /** @description Property names, positions, or null for all entries of an array; such as `["address", "street"]`. In an mdoc, an element after the element name may also be a negative integer, which is a key of a map */
        path: (string | number | null)[];
        /** @description Every credential contains it; credentials without it are not issued */
        mandatory?: boolean;
        /** @description Name in wallets, by language */
        display?: {
          /** @description Label of the claim */
          name: string;
          /** @description BCP 47, such as en or de-AT; each language at most once */
          locale?: string;
        }[];
      }[];
      /** @description mso_mdoc: the document type */
      docType?: string;
      /** @description mso_mdoc: the namespace of claims without one */
      namespace?: string;
      /** @description mso_mdoc: static elements of documents without other claims, by namespace */
      claimsByNamespace?: {
        [key: string]: {
          [key: string]: components["schemas"]["Json"];
        };
      };
      /** @description Optional. dc+sd-jwt: `jwk`, mso_mdoc: `cose_key`, none without keyBinding; any other value is rejected */
      cryptographic_binding_methods_supported?: string[];
      /** @description Optional. The algorithm of the signing key, such as `ES256`, for mso_mdoc also as COSE number; any other value is rejected */
      credential_signing_alg_values_supported?: (string | number)[];
    } & unknown;
    TypeMetadata: {
      /** @description The type. Default: a type that the service hosts, `<PUBLIC_URL>/<tenant>/vct/<id>` */
      vct?: string;
      /** @description For developers. Default: the first display name */
      name?: string;
      /** @description For developers. Default: that of the configuration */
      description?: string;
      /** @description The type that this one extends */
      extends?: string;
      /** @description Hash of its document, such as sha256-… */
      "extends#integrity"?: string;
      /** @description A JSON Schema for verifiers; not applied by the service */
      schema_uri?: string;
      /** @description Its hash, such as sha256-… */
      "schema_uri#integrity"?: string;
      /** @description SD-JWT VC section 5.5. Default: derived from `config.display` */
      display?: (({
        /** @description BCP 47, such as en or de-AT; each language at most once */
        locale?: string;
        /** @description BCP 47, such as en or de-AT; each language at most once */
        lang?: string;
        /** @description Of the type, for users */
        name: string;
        description?: string;
        rendering?: {
          simple?: {
            logo?: {
              /** @description http or https address, or a data URL of an image */
              uri: string;
              "uri#integrity"?: string;
              alt_text?: string;
            } & {
              [key: string]: unknown;
            };
            background_image?: {
              /** @description http or https address, or a data URL of an image */
              uri: string;
              "uri#integrity"?: string;
              alt_text?: string;
            } & {
              [key: string]: unknown;
            };
            background_color?: string;
            text_color?: string;
          } & {
            [key: string]: unknown;
          };
          svg_templates?: ({
            uri: string;
            "uri#integrity"?: string;
            properties?: {
              /** @enum {string} */
              orientation?: "portrait" | "landscape";
              /** @enum {string} */
              color_scheme?: "light" | "dark";
              /** @enum {string} */
              contrast?: "normal" | "high";
            } & {
              [key: string]: unknown;
            };
          } & {
            [key: string]: unknown;
          })[];
        } & {
          [key: string]: unknown;
        };
      } & {
        [key: string]: unknown;
      }) & (unknown | unknown))[];
      /** @description SD-JWT VC section 5.6. Default: derived from `config.claims` and the frame */
      claims?: ({
        /** @description Property names, positions, or null for all entries of an array */
        path: (string | number | null)[];
        display?: (({
          /** @description BCP 47, such as en or de-AT; each language at most once */
          locale?: string;
          /** @description BCP 47, such as en or de-AT; each language at most once */
          lang?: string;
          /** @description Of the claim, for users */
          label: string;
          description?: string;
        } & {
          [key: string]: unknown;
        }) & (unknown | unknown))[];
        /** @description Required in every credential */
        mandatory?: boolean;
        /**
         * @description Selective disclosure of the claim; the frame of the configuration must match
         * @enum {string}
         */
        sd?: "always" | "allowed" | "never";
        svg_id?: string;
      } & {
        [key: string]: unknown;
      })[];
    } & {
      [key: string]: unknown;
    };
    InteractiveAction: {
      /**
       * @description The wallet presents credentials first
       * @constant
       */
      type: "openid4vp_presentation";
      /** @description Label for the administrator; not visible to wallets */
      label?: string;
      /** @description Id of a presentation configuration. The verified claims are sent to its `webhook`, and to the claims webhook as `credentials` */
      presentationConfigId: string;
    } | {
      /**
       * @description The user visits your page first
       * @constant
       */
      type: "redirect_to_web";
      /** @description Label for the administrator; not visible to wallets */
      label?: string;
      /** @description The page that the user visits. {auth_session} is replaced by the id of this visit. The query parameter return_to is appended: the address to which the page redirects the browser at the end, with &error=access_denied if the user cancelled. */
      url: string;
      /** @description Called with POST of {session, auth_session} to confirm that the user of this visit has completed the page, before anything is issued. Any 2xx with JSON or without a body confirms it; otherwise the wallet is denied. Without it the return of the browser is trusted, which every user can forge, so the page is then only informative. */
      callbackUrl?: string;
      /** @description For the administrator */
      description?: string;
    };
    DisclosurePolicy: {
      /**
       * @description To anybody
       * @constant
       */
      policy: "none";
    } | {
      /**
       * @description Allows the named relying parties
       * @constant
       */
      policy: "allowList";
      /** @description Relying parties, by their names in access certificates; at least one */
      values: string[];
    } | {
      /**
       * @description Allows relying parties with a certificate of one of these authorities
       * @constant
       */
      policy: "rootOfTrust";
      /** @description Names of the authorities, at least one */
      values: string | string[];
    } | {
      /**
       * @description Allows relying parties that present an attestation
       * @constant
       */
      policy: "attestationBased";
      /** @description Alternatives; one is enough */
      values: components["schemas"]["AttestationOfRelyingParty"][];
    };
    AttestationOfRelyingParty: {
      /** @description DCQL claims queries */
      claims?: components["schemas"]["DcqlObject"][];
      /** @description DCQL credential queries for the credentials of the relying party */
      credentials: components["schemas"]["DcqlObject"][];
      /** @description DCQL credential sets over these */
      credential_sets?: components["schemas"]["DcqlObject"][];
    };
    DcqlObject: {
      [key: string]: components["schemas"]["Json"];
    };
    CredentialReusePolicy: {
      /**
       * @description The policies of the ARF
       * @constant
       */
      id: "arf_annex_ii";
      /** @description The preferred one is first */
      options: {
        /** @description Either `once_only` (method A) or `limited_time` (B), not both; additionally `rotating-batch` (C) and `per-relying-party` (D) for wallets that support them. The preferred one is first */
        details: ("once_only" | "limited_time" | "rotating-batch" | "per-relying-party")[];
        /** @description Copies of one request, for all methods except `limited_time`; more are rejected */
        batch_size?: number;
        /** @description `once_only`, `per-relying-party`: number of unused copies at which wallets request another batch; below batch_size */
        reissue_trigger_unused?: number;
        /** @description All methods except `once_only`: seconds before the expiry at which wallets request new copies; below lifeTime */
        reissue_trigger_lifetime_left?: number;
      }[];
    };
    DeferredCompletion: {
      /** @description credential of the backend, for a request with one key */
      credential?: string;
      /** @description credentials of the backend, at most one per key */
      credentials?: string[];
      /** @description signed by the service, one credential per key */
      claims?: {
        [key: string]: components["schemas"]["Json"];
      };
    } & (unknown | unknown | unknown);
    DeferredFailure: {
      /** @description for the operator; wallets never see it */
      errorMessage: string;
    };
    PresentationRequest: {
      /**
       * @description uri: a link that starts a wallet; dc-api: a request for navigator.credentials.get
       * @enum {string}
       */
      response_type: "uri" | "dc-api";
      /** @description id of the presentation configuration */
      requestId: string;
      /** @description instead of the configured one */
      webhook?: {
        /** @description Public https, or an address that `OUTBOUND_ALLOW` names; redirects are not followed */
        url: string;
        /** @description Header with an API key; optional */
        auth?: {
          /** @constant */
          type: "apiKey";
          config: {
            /** @description Such as `Authorization`; no connection header, none that begins with `content-` or `webhook-` */
            headerName: string;
            /** @description The whole value of the header, such as `Bearer …`. Responses show `***`; written back for the same address and header, that keeps the stored value */
            value: string;
          };
        };
      };
      /** @description instead of the configured one; without effect with dc-api */
      redirectUri?: string;
      /** @description instead of the configured; empty: none */
      transaction_data?: components["schemas"]["TransactionData"][];
      /** @description Your reference for the session, such as an order number: `GET /session?q=` finds it. It need not be unique, and wallets never see it */
      reference?: string;
      /** @description With dc-api: the expectedOrigin whose page sends the request */
      origin?: string;
    };
    TransactionData: {
      type: string;
      credential_ids: string[];
      transaction_data_hashes_alg?: ("sha-256" | "sha-384" | "sha-512")[];
    } & {
      [key: string]: unknown;
    };
    PresentationConfigurationInput: {
      id: string;
      dcql_query: {
        credentials: {
          id: string;
          /** @enum {string} */
          format: "dc+sd-jwt" | "mso_mdoc";
          meta: {
            [key: string]: unknown;
          };
          multiple?: boolean;
          claims?: {
            id?: string;
            /** @description Property names, positions, or null for all entries of an array; the first element is a name */
            path: (string | null | number)[] & unknown;
            values?: (string | number | boolean)[];
            /** @description mso_mdoc only: true if the verifier stores the element */
            intent_to_retain?: boolean;
          }[];
          claim_sets?: string[][];
          /** @description Accepted issuers. aki: the key identifier, base64url, of an anchor of this configuration that certifies the credential, or the SHA-1 hash of its key if its certificate has none; key identifiers in the chain of a credential are ignored. etsi_tl: the address of a trust list among the anchors */
          trusted_authorities?: {
            type: string;
            values: string[];
          }[];
          require_cryptographic_holder_binding?: boolean;
        }[];
        credential_sets?: {
          options: string[][];
          required?: boolean;
        }[];
      };
      description?: string | null;
      /** @description Seconds for which a request can be answered; its session has the same lifetime, also if sessions of the tenant have a shorter retention. At most a year, since the signing access certificate expires. Unless stated: `300` */
      lifeTime?: number;
      transaction_data?: components["schemas"]["TransactionData"][] | null;
      /** @description For transaction data that an mso_mdoc confirms: by type, the device-signed element with the hash of the entry, a byte string or its base64url text, or several of them in an array. The issuer must authorize the device to sign the element */
      transactionDataElements?: {
        [key: string]: {
          namespace: string;
          element: string;
        };
      } | null;
      /** @description For transaction data of a strong customer authentication with a type of a rulebook: by type, the schema of TS12 of its payload. Types that TS12 defines need no entry. Payloads are validated when they are written, and a key binding that confirms one contains how the user was authenticated */
      transactionDataSchemas?: {
        [key: string]: "urn:eudi:sca:payment:1" | "urn:eudi:sca:login_risk_transaction:1" | "urn:eudi:sca:account_access:1" | "urn:eudi:sca:emandate:1";
      } | null;
      registrationCert?: components["schemas"]["RegistrationCertificateRequest"] | null;
      /** @description Purpose of the request, by language (OpenID4VP 1.0 section 15.3). Wallets show it from the registration certificate that registrationCert orders with body, unless that has its own purpose. A request has no other place for it; without such a certificate users see it only on the page of the request (pageUrl) */
      purpose?: {
        lang: string;
        content: string;
      }[] | null;
      webhook?: {
        /** @description Public https, or an address that `OUTBOUND_ALLOW` names; redirects are not followed */
        url: string;
        /** @description Header with an API key; optional */
        auth?: {
          /** @constant */
          type: "apiKey";
          config: {
            /** @description Such as `Authorization`; no connection header, none that begins with `content-` or `webhook-` */
            headerName: string;
            /** @description The whole value of the header, such as `Bearer …`. Responses show `***`; written back for the same address and header, that keeps the stored value */
            value: string;
          };
        };
      } | null;
      attached?: {
        format: string;
        data: {
          [key: string]: components["schemas"]["Json"];
        } | string;
        credential_ids?: string[];
      }[] | null;
      redirectUri?: string | null;
      /** @description Claims for sessions and backends. disclosed (default): all that the wallet disclosed, without what binds it to its holder and its status. requested: only the requested claims */
      values?: ("disclosed" | "requested") | null;
      /** @description True: the result waits until the browser returns the response_code of the redirect. GET /session/{id} with it completes the session and calls the webhook. A request then requires a redirectUri, here or its own. Not through the Digital Credentials API, which has no redirect. With true there is no crossDeviceUri. Under a profile, a configuration without this property waits for the response_code on the same device, and has a crossDeviceUri */
      requireResponseCode?: boolean | null;
      accessKeyChainId?: string | null;
      /** @description Accepted issuers. Default: the authorities of the tenant; an empty array accepts none. Trust lists that the query names (etsi_tl) are added with the certificate of their signer when they are written. Unless stated: `[{"ownAuthorities":true}]` */
      trustAnchors?: components["schemas"]["TrustAnchor"][];
      /** @description Requirements for signers of an org.iso.18013.5.1.mDL. iso-18013-5 (default): a certificate for document signers (extended key usage 1.0.18013.5.1.2, critical) of the country of its authority and of the licence. none: the same requirements as for signers of other mdocs */
      mdlProfile?: ("iso-18013-5" | "none") | null;
      /** @description Validation of each SD-JWT VC against the metadata of its type: claims that must, or must not, be selectively disclosable (sd), and mandatory claims. Metadata of types that this tenant hosts are read locally; others are fetched from the type, an https address, by the hash in the credential (vct#integrity). Unavailable metadata reject the credential. Default: off */
      typeMetadata?: ("off" | "enforced") | null;
      /** @description Revocation check of issuer certificates below the trusted one, by the revocation lists (CRLs) that they name, or by the responder (OCSP) if they name only that: off (default) does not check; if-available rejects revoked certificates and accepts those that cannot be checked, which the report states; required rejects both */
      certificateRevocation?: ("off" | "if-available" | "required") | null;
      /**
       * @description direct_post.jwt encrypts responses, direct_post does not; also through the Digital Credentials API. Unless stated: `"direct_post.jwt"`
       * @enum {string}
       */
      responseMode?: "direct_post.jwt" | "direct_post";
      /**
       * @description Client identifier of the request: the hash of the access certificate, a DNS name of it, which is then the host of PUBLIC_URL, or unsigned the response address. Unless stated: `"x509_hash"`
       * @enum {string}
       */
      clientIdPrefix?: "x509_hash" | "x509_san_dns" | "redirect_uri";
      /**
       * @description post lets wallets send their metadata and a nonce. Unless stated: `"get"`
       * @enum {string}
       */
      requestUriMethod?: "get" | "post";
      /** @description URI that starts the wallet: openid4vp://, haip-vp://, or the https address of a wallet. Unless stated: `"openid4vp://"` */
      invocationUri?: string;
      /** @description Sent as client_name of client_metadata: the name of the verifier that wallets may show. OpenID4VP 1.0 does not define it: most wallets ignore it, none has a reason to trust it, and some test suites warn of it, so it is sent only if it is set here */
      clientName?: string | null;
      /** @description Sent as logo_uri of client_metadata, like clientName */
      logoUri?: string | null;
      /** @description Origins whose pages may send requests through the Digital Credentials API. Default: the origin of PUBLIC_URL */
      expectedOrigins?: string[] | null;
      /**
       * @description requests through the Digital Credentials API: signed by the access key, unsigned, or signed by several keys (OpenID4VP 1.0 appendix A.3.2), additionally those of furtherAccessKeyChainIds. Unless stated: `"signed"`
       * @enum {string}
       */
      dcApiRequest?: "signed" | "unsigned" | "multisigned";
      /** @description With dcApiRequest multisigned: further key chains that sign the same request, for wallets that know the verifier by another certificate. A registration certificate must be issued for all their subjects */
      furtherAccessKeyChainIds?: string[] | null;
      /** @description Protocols for the browser: openid4vp, org-iso-mdoc (ISO/IEC TS 18013-7 Annex C, only for mdocs, since some platforms support nothing else), or both in one request. org-iso-mdoc is for one page: a request names its origin if there are several expectedOrigins. Unless stated: `["openid4vp"]` */
      dcApiProtocols?: ("openid4vp" | "org-iso-mdoc")[];
      /** @description The former name of `accessKeyChainId`. A request that has both with different values is rejected with 400 */
      accessCertId?: string | null;
      readonly tenant?: components["schemas"]["TenantReference"];
      /** Format: date-time */
      readonly createdAt?: string;
      /** Format: date-time */
      readonly updatedAt?: string;
      /** @description Rules of wallets, verifiers or laws that the stored object violates */
      readonly warnings?: components["schemas"]["Warning"][];
    };
    TrustAnchor: {
      /** @description PEM; a CA certificate, or the certificate of an issuer. Certificates of different keys have different key identifiers */
      certificate: string;
      /** @description true: signatures by this certificate are accepted, regardless of its name and usage, and nothing that it certified. Its validity and its key are checked. For an issuer whose certificate is marked as a CA; no profile allows it */
      pin?: boolean;
    } | {
      /**
       * @description all key chains of the tenant that issue credentials, at the time of the check
       * @constant
       */
      ownAuthorities: true;
    } | ({
      /** @description the CA of a key chain of the tenant that issues credentials */
      keyChainId?: string;
      /** @description The former name of `keyChainId`. A request that has both with different values is rejected with 400 */
      certId?: string;
    } & (unknown | unknown)) | {
      /** @description address of a signed list of trusted entities (ETSI TS 119 602), or of a trusted list in XML (ETSI TS 119 612), whose signer `signedBy` names by its own certificate */
      trustList: string;
      /** @description PEM; allowed signers of the list: a certificate, or a CA. Optional only for a list of this service */
      signedBy?: string[];
      /** @description Services whose certificates are accepted. Default: http://uri.etsi.org/19602/SvcType/PID/Issuance, http://uri.etsi.org/19602/SvcType/PubEAA/Issuance, http://uri.etsi.org/19602/SvcType/EAA/Issuance, http://trust.ec.europa.eu/lists/mDL/SvcType/Issuance, http://uri.etsi.org/TrstSvc/Svctype/EAA/Q, http://uri.etsi.org/TrstSvc/Svctype/EAA/Pub-EAA, http://uri.etsi.org/TrstSvc/Svctype/EAA */
      serviceTypes?: string[];
      /**
       * @description Time at which the status of a service is evaluated: the time of the check (default), or the time at which its issuer states that the credential was issued, by the history of the service. An issuer with a compromised key, or without approval, can state any time
       * @enum {string}
       */
      serviceStatusAt?: "check" | "issuance";
      /** @description The list is a list of lists: the lists that it points to are trusted, each with the signer that it names, one level deep and at most 64 */
      follow?: components["schemas"]["ListOfLists"];
    };
    ListOfLists: {
      /** @description only lists of these territories of the list of lists. Default: all */
      territories?: string[];
    };
    PresentationConfigurationUpdate: {
      id?: string;
      dcql_query?: {
        credentials: {
          id: string;
          /** @enum {string} */
          format: "dc+sd-jwt" | "mso_mdoc";
          meta: {
            [key: string]: unknown;
          };
          multiple?: boolean;
          claims?: {
            id?: string;
            /** @description Property names, positions, or null for all entries of an array; the first element is a name */
            path: (string | null | number)[] & unknown;
            values?: (string | number | boolean)[];
            /** @description mso_mdoc only: true if the verifier stores the element */
            intent_to_retain?: boolean;
          }[];
          claim_sets?: string[][];
          /** @description Accepted issuers. aki: the key identifier, base64url, of an anchor of this configuration that certifies the credential, or the SHA-1 hash of its key if its certificate has none; key identifiers in the chain of a credential are ignored. etsi_tl: the address of a trust list among the anchors */
          trusted_authorities?: {
            type: string;
            values: string[];
          }[];
          require_cryptographic_holder_binding?: boolean;
        }[];
        credential_sets?: {
          options: string[][];
          required?: boolean;
        }[];
      };
      description?: string | null;
      lifeTime?: number | null;
      transaction_data?: components["schemas"]["TransactionData"][] | null;
      transactionDataElements?: {
        [key: string]: {
          namespace: string;
          element: string;
        };
      } | null;
      transactionDataSchemas?: {
        [key: string]: "urn:eudi:sca:payment:1" | "urn:eudi:sca:login_risk_transaction:1" | "urn:eudi:sca:account_access:1" | "urn:eudi:sca:emandate:1";
      } | null;
      registrationCert?: components["schemas"]["RegistrationCertificateRequest"] | null;
      purpose?: {
        lang: string;
        content: string;
      }[] | null;
      webhook?: {
        /** @description Public https, or an address that `OUTBOUND_ALLOW` names; redirects are not followed */
        url: string;
        /** @description Header with an API key; optional */
        auth?: {
          /** @constant */
          type: "apiKey";
          config: {
            /** @description Such as `Authorization`; no connection header, none that begins with `content-` or `webhook-` */
            headerName: string;
            /** @description The whole value of the header, such as `Bearer …`. Responses show `***`; written back for the same address and header, that keeps the stored value */
            value: string;
          };
        };
      } | null;
      attached?: {
        format: string;
        data: {
          [key: string]: components["schemas"]["Json"];
        } | string;
        credential_ids?: string[];
      }[] | null;
      redirectUri?: string | null;
      values?: ("disclosed" | "requested") | null;
      requireResponseCode?: boolean | null;
      accessKeyChainId?: string | null;
      trustAnchors?: components["schemas"]["TrustAnchor"][] | null;
      mdlProfile?: ("iso-18013-5" | "none") | null;
      typeMetadata?: ("off" | "enforced") | null;
      certificateRevocation?: ("off" | "if-available" | "required") | null;
      responseMode?: ("direct_post.jwt" | "direct_post") | null;
      clientIdPrefix?: ("x509_hash" | "x509_san_dns" | "redirect_uri") | null;
      requestUriMethod?: ("get" | "post") | null;
      invocationUri?: string | null;
      clientName?: string | null;
      logoUri?: string | null;
      expectedOrigins?: string[] | null;
      dcApiRequest?: ("signed" | "unsigned" | "multisigned") | null;
      furtherAccessKeyChainIds?: string[] | null;
      dcApiProtocols?: ("openid4vp" | "org-iso-mdoc")[] | null;
      /** @description The former name of `accessKeyChainId`. A request that has both with different values is rejected with 400 */
      accessCertId?: string | null;
      readonly tenant?: components["schemas"]["TenantReference"];
      /** Format: date-time */
      readonly createdAt?: string;
      /** Format: date-time */
      readonly updatedAt?: string;
      /** @description Rules of wallets, verifiers or laws that the stored object violates */
      readonly warnings?: components["schemas"]["Warning"][];
    };
    PresentationToTry: {
      /** @description An SD-JWT VC with or without key binding; a DeviceResponse, a document of one or an IssuerSigned (ISO/IEC 18013-5) in base64url, base64 or hexadecimal; or a vp_token in JSON, also within a response of the Digital Credentials API */
      presentation: string;
    };
    Revocation: {
      sessionId: string;
      /**
       * @description 0 valid, 1 revoked, 2 suspended. Revoked is final; valid and suspended can be changed
       * @enum {number}
       */
      status: 0 | 1 | 2;
      credentialConfigurationId?: string;
      /** @description Reason for the audit log; wallets and verifiers never see it. The log is kept longer than the session: no names or other personal data */
      reason?: string;
    };
    SubjectRevocation: {
      /** @description Claims of the subject, as they were issued; claims that do not identify the subject are ignored */
      claims: {
        [key: string]: components["schemas"]["Json"];
      };
      /** @description Claims that identify the subject. Default: those of each credential configuration. For credentials of a configuration that was changed or deleted */
      subjectClaims?: string[][];
      /** @description Only credentials of this configuration. Default: all that the client may use */
      credentialConfigurationId?: string;
    };
    ClientCreation: {
      /** @description `client_id` at `POST /oauth2/token`; unique in the whole service */
      clientId: string;
      /** @description Only roles of the caller can be granted */
      roles: components["schemas"]["Role"][];
      /** @description Default: generated, and shown once */
      secret?: string;
      /** @description For administrators */
      description?: string | null;
      /** @description Ids of presentation configurations that the client may use; empty or null for all. A client with such a list cannot write objects that all configurations depend on, such as keys and trust lists */
      allowedPresentationConfigs?: string[] | null;
      /** @description Ids of credential configurations that the client may use; empty or null for all. A client with such a list cannot write objects that all configurations depend on, such as keys and trust lists */
      allowedIssuanceConfigs?: string[] | null;
    };
    ClientUpdate: {
      /** @description Only roles of the caller can be granted */
      roles: components["schemas"]["Role"][];
      /** @description For administrators */
      description?: string | null;
      /** @description Ids of presentation configurations that the client may use; empty or null for all. A client with such a list cannot write objects that all configurations depend on, such as keys and trust lists */
      allowedPresentationConfigs?: string[] | null;
      /** @description Ids of credential configurations that the client may use; empty or null for all. A client with such a list cannot write objects that all configurations depend on, such as keys and trust lists */
      allowedIssuanceConfigs?: string[] | null;
      readonly clientId?: string;
      readonly tenantId?: string | null;
      readonly tenant?: components["schemas"]["TenantReference"] | null;
      /** Format: date-time */
      readonly createdAt?: string;
      /** Format: date-time */
      readonly updatedAt?: string;
      /** @description Rules of wallets, verifiers or laws that the stored object violates */
      readonly warnings?: components["schemas"]["Warning"][];
    };
    KeyChainCreation: {
      id?: string;
      description?: string | null;
      /** @description Provider that creates its key, one of `GET /key-chain/providers`. Default: that of the tenant */
      kmsProvider?: string;
      /**
       * @description One usage; `usages` accepts several. `access` requires the role `presentation:manage`, all others `issuance:manage`
       * @enum {string}
       */
      usageType?: "access" | "signing" | "trustList" | "statusList";
      usages?: ("access" | "signing" | "trustList" | "statusList")[];
      /**
       * @description Default: ES256
       * @enum {string}
       */
      algorithm?: "ES256" | "ES384" | "ES512" | "EdDSA";
      /** @description Common name. Default: the name of the tenant */
      subjectName?: string;
      /** @description Country of the issuer in its certificates; readers of driving licences require it. Default: that of the tenant */
      country?: string;
      /** @description Organization of the issuer in its certificates. Default: that of the tenant, otherwise its name */
      organization?: string;
      /** @description True if the key is rotated by interval */
      rotationEnabled?: boolean;
      /** @description Default: 90. 24 former keys are kept, so certValidityDays are at most 24 intervals: with 365 days the shortest interval is 16 days */
      rotationIntervalDays?: number;
      /** @description Validity of certificates of the internal authority. Default: 365 */
      certValidityDays?: number;
      /** @description A key chain whose internal authority certifies this one, too: for `access` one for `access`, for other usages one for other usages. Default: its own authority */
      rootKeyChainId?: string;
      /** @description Self-signed: only for trust lists, since wallets reject everything else under such a key */
      selfSigned?: boolean;
    } & (unknown | unknown);
    KeyChainUpdate: {
      description?: string | null;
      /** @description At least one, unless the key has no usage */
      usages?: ("access" | "signing" | "trustList" | "statusList")[];
      /** @description Certificates of an external authority for the active key; they replace the present ones */
      certificates?: string | string[];
      /** @description True if the key is rotated by interval */
      rotationEnabled?: boolean;
      /** @description Default: 90. 24 former keys are kept, so certValidityDays are at most 24 intervals: with 365 days the shortest interval is 16 days */
      rotationIntervalDays?: number;
      /** @description Validity of certificates of the internal authority. Default: 365 */
      certValidityDays?: number;
      readonly id?: string;
      readonly tenantId?: string;
      /** @description The first of `usages`; null for a key without any */
      readonly usageType?: ("access" | "signing" | "trustList" | "statusList") | null;
      /** @constant */
      readonly usage?: "sign";
      readonly kmsProvider?: string;
      /** @description The provider's own name of the key; null for local keys */
      readonly externalKeyId?: string | null;
      readonly rootKey?: components["schemas"]["PublicKey"] | null;
      /** @description PEM; the anchor that relying parties configure */
      readonly rootCertificate?: string | null;
      readonly activeKey?: components["schemas"]["PublicKey"];
      /** @description PEM, leaf first */
      readonly activeCertificate?: string;
      /** Format: date-time */
      readonly activeCertificateExpiry?: string;
      /** @description Since when the active key is compromised: it signs nothing until the key chain is rotated. Null for no compromise */
      readonly compromisedAt?: string | null;
      readonly lastRotatedAt?: string | null;
      readonly previousKey?: components["schemas"]["PublicKey"] | null;
      readonly previousCertificate?: string | null;
      /** @description Time at which everything that it signed has expired; it is published until then */
      readonly previousKeyExpiry?: string | null;
      /** @description All valid former keys, newest first */
      readonly previousKeys?: {
        key: components["schemas"]["PublicKey"];
        /** @description PEM, leaf first */
        certificate: string;
        /** Format: date-time */
        expiry: string;
      }[];
      /** Format: date-time */
      readonly createdAt?: string;
      /** Format: date-time */
      readonly updatedAt?: string;
      /** @description Rules of wallets, verifiers or laws that the stored object violates */
      readonly warnings?: components["schemas"]["Warning"][];
    };
    KeyChainImport: {
      id?: string;
      description?: string | null;
      /** @description Provider that creates its key, one of `GET /key-chain/providers`. Default: that of the tenant */
      kmsProvider?: string;
      /**
       * @description One usage; `usages` accepts several. `access` requires the role `presentation:manage`, all others `issuance:manage`
       * @enum {string}
       */
      usageType?: "access" | "signing" | "trustList" | "statusList";
      usages?: ("access" | "signing" | "trustList" | "statusList")[];
      /** @description Private key on P-256, P-384, P-521 or Ed25519: PEM (PKCS#8 or SEC1) or JWK. It is never shown again */
      key: string | {
        [key: string]: components["schemas"]["Json"];
      };
      /** @description PEM, leaf first. Absent: an internal authority certifies the key */
      certificates?: string | string[];
      /** @description Common name. Default: the name of the tenant */
      subjectName?: string;
      /** @description Country of the issuer in its certificates; readers of driving licences require it. Default: that of the tenant */
      country?: string;
      /** @description Organization of the issuer in its certificates. Default: that of the tenant, otherwise its name */
      organization?: string;
      /** @description True if the key is rotated by interval */
      rotationEnabled?: boolean;
      /** @description Default: 90. 24 former keys are kept, so certValidityDays are at most 24 intervals: with 365 days the shortest interval is 16 days */
      rotationIntervalDays?: number;
      /** @description Validity of certificates of the internal authority. Default: 365 */
      certValidityDays?: number;
      /** @description A key chain whose internal authority certifies this one, too: for `access` one for `access`, for other usages one for other usages. Default: its own authority */
      rootKeyChainId?: string;
    } & (unknown | unknown);
    KeyChainRotation: {
      /** @description Provider of this and all later keys, one of `GET /key-chain/providers`. Default: the present provider */
      provider?: string;
      /** @description Alias of `provider` */
      kmsProvider?: string;
      /** @description An attacker may have the present key: the public key is removed from all key chains of the tenant, and its certificates of internal authorities are revoked, so that nothing signed with it is valid. A key chain that cannot be rotated signs nothing until it is replaced */
      compromised?: boolean;
    };
    CertificateSigningRequest: {
      /** @description Common name. Default: that of the present certificate */
      subjectName?: string;
      /** @description Country of the issuer in its certificates; readers of driving licences require it. Default: that of the tenant */
      country?: string;
      /** @description Organization of the issuer in its certificates. Default: that of the tenant, otherwise its name */
      organization?: string;
      /** @description Host names. Default: that of `PUBLIC_URL` */
      dnsNames?: string[];
    };
    CertificateCreation: {
      id?: string;
      /** @description Id of any certificate or key chain of the key */
      keyId: string;
      certUsageTypes: ("access" | "signing" | "trustList" | "statusList")[];
      /** @description PEM, leaf first. Absent: the internal CA of the key issues a certificate */
      crt?: string | string[];
      /** @description Common name. Default: the name of the tenant */
      subjectName?: string;
      description?: string | null;
    };
    CertificateUpdate: {
      description?: string | null;
      certUsageTypes?: ("access" | "signing" | "trustList" | "statusList")[];
      /** @description Another name of `certUsageTypes`, also as answers show them. At least one, unless the key has no usage */
      usages?: (("access" | "signing" | "trustList" | "statusList") | {
        /** @enum {string} */
        usage: "access" | "signing" | "trustList" | "statusList";
        tenantId?: string;
        certId?: string;
        cert?: {
          id: string;
        } & {
          [key: string]: unknown;
        };
      })[];
      /** @description Certificates of an external authority for the key; they replace the present ones */
      crt?: string | string[];
      /** @description The id of the key chain */
      readonly id?: string;
      /** @description Id of the key: the id of its first key chain */
      readonly keyId?: string;
      readonly tenantId?: string;
      /** Format: date-time */
      readonly createdAt?: string;
      /** Format: date-time */
      readonly updatedAt?: string;
      readonly key?: components["schemas"]["Key"];
      /** @description Rules of wallets, verifiers or laws that the stored object violates */
      readonly warnings?: components["schemas"]["Warning"][];
    } & unknown;
    KeyCreation: {
      id?: string;
      description?: string | null;
      /** @description Provider that creates its key, one of `GET /key-chain/providers`. Default: that of the tenant */
      kmsProvider?: string;
      /** @description Private key on P-256, P-384, P-521 or Ed25519: PEM (PKCS#8 or SEC1) or JWK. It is never shown again */
      key?: string | {
        [key: string]: components["schemas"]["Json"];
      };
      /** @constant */
      usage?: "sign";
      /** @description Default: none; POST /certs issues certificates for usages */
      usages?: ("access" | "signing" | "trustList" | "statusList")[];
      /**
       * @description Default: ES256
       * @enum {string}
       */
      algorithm?: "ES256" | "ES384" | "ES512" | "EdDSA";
      /** @description Common name. Default: the name of the tenant */
      subjectName?: string;
      /** @description Country of the issuer in its certificates; readers of driving licences require it. Default: that of the tenant */
      country?: string;
      /** @description Organization of the issuer in its certificates. Default: that of the tenant, otherwise its name */
      organization?: string;
    } & unknown;
    StatusListCreation: {
      /** @description Only credentials of this configuration get entries; null: credentials of any configuration */
      credentialConfigurationId?: string | null;
      /** @description Key chain that signs the list; null: the default of the tenant for status lists */
      keyChainId?: string | null;
      /** @description Entries of a list. Default: `STATUS_CAPACITY` */
      capacity?: number | null;
      /** @description Bits per entry: 1 for valid and revoked, 2 or more also for suspended. Default: `STATUS_BITS` */
      bits?: (1 | 2 | 4 | 8) | null;
      /** @description Validity of a list token in seconds. Default: `STATUS_TTL` */
      ttl?: number | null;
      /** @description Publishes changes immediately; otherwise when the published token expires */
      immediateUpdate?: boolean | null;
      /** @description Lists the addresses in one document. Default: true */
      enableAggregation?: boolean | null;
      /** @description The former name of `keyChainId`. A request that has both with different values is rejected with 400 */
      certId?: string | null;
    };
    StatusListUpdate: {
      /** @description Only credentials of this configuration get entries; null: credentials of any configuration */
      credentialConfigurationId?: string | null;
      /** @description Key chain that signs the list; null: the default of the tenant for status lists */
      keyChainId?: string | null;
      /** @description The former name of `keyChainId`. A request that has both with different values is rejected with 400 */
      certId?: string | null;
      readonly id?: string;
      readonly tenantId?: string;
      readonly bits?: 1 | 2 | 4 | 8;
      readonly capacity?: number;
      /** @description Entries of credentials. Processes reserve entries in advance: those that another process has reserved and not yet allocated to a credential are counted as used */
      readonly usedEntries?: number;
      readonly availableEntries?: number;
      readonly uri?: string;
      /** @description Validity of a token of the list in seconds */
      readonly ttl?: number;
      readonly immediateUpdate?: boolean;
      readonly enableAggregation?: boolean;
      /** Format: date-time */
      readonly createdAt?: string;
      /** @description Expiry of the last token; null before the first */
      readonly expiresAt?: string | null;
      /** @description Rules of wallets, verifiers or laws that the stored object violates */
      readonly warnings?: components["schemas"]["Warning"][];
    };
    TrustListInput: {
      id?: string;
      description?: string | null;
      /** @description Key chain that signs the list. Default: the first usable one for `trustList` */
      keyChainId?: string | null;
      entities: components["schemas"]["TrustListEntity"][];
      /** @description Only in responses; write `entities` */
      entityConfig?: unknown;
      /** @description Scheme information of the list, in the structure of the document */
      data?: components["schemas"]["TrustListData"] | null;
      /** @description The former name of `keyChainId`. A request that has both with different values is rejected with 400 */
      certId?: string | null;
      readonly tenantId?: string;
      readonly tenant?: components["schemas"]["TenantReference"];
      /** @description Null: the signing key chain was deleted */
      readonly cert?: components["schemas"]["Certificate"] | null;
      /** @description Increases with every write and every signature */
      readonly sequenceNumber?: number;
      /** @description The signed list as it is published */
      readonly jwt?: string;
      /** Format: date-time */
      readonly createdAt?: string;
      /**
       * Format: date-time
       * @description Time of the last signature
       */
      readonly updatedAt?: string;
      /** @description Rules of wallets, verifiers or laws that the stored object violates */
      readonly warnings?: components["schemas"]["Warning"][];
    };
    TrustListEntity: ({
      /** @constant */
      type: "internal";
      issuerKeyChainId?: string;
      /** @description Absent: the entity lists no revocation service */
      revocationKeyChainId?: string;
      info: components["schemas"]["TrustedEntityInfo"];
      /**
       * @description Only in a list of public bodies (`EUPubEAAProvidersList`). Default: `notified`
       * @enum {string}
       */
      status?: "notified" | "withdrawn";
      /**
       * Format: date-time
       * @description Start of the status. Default: the time of the write
       */
      statusStartingTime?: string;
      /** @description The former name of `issuerKeyChainId`. A request that has both with different values is rejected with 400 */
      issuerCertId?: string;
      /** @description The former name of `revocationKeyChainId`. A request that has both with different values is rejected with 400 */
      revocationCertId?: string;
    } & (unknown | unknown)) | {
      /** @constant */
      type: "external";
      issuerCertPem: string;
      /** @description Absent: the entity lists no revocation service */
      revocationCertPem?: string;
      info: components["schemas"]["TrustedEntityInfo"];
      /**
       * @description Only in a list of public bodies (`EUPubEAAProvidersList`). Default: `notified`
       * @enum {string}
       */
      status?: "notified" | "withdrawn";
      /**
       * Format: date-time
       * @description Start of the status. Default: the time of the write
       */
      statusStartingTime?: string;
    };
    TrustedEntityInfo: {
      name: string;
      /** @description Language of these texts. Default: `en` */
      lang?: string;
      /** @description A page about the entity. Default: that of the tenant */
      uri?: string;
      /** @description Default: that of the tenant for its own entities, otherwise that of the certificate */
      country?: string;
      locality?: string;
      postalCode?: string;
      /** @description With the rest of the address, where none of it is stated, that of the tenant, for its own entities, or of the certificate */
      streetAddress?: string;
      contactUri?: string;
    };
    TrustListData: {
      LoTE?: {
        ListAndSchemeInformation?: components["schemas"]["SchemeInformation"];
      };
    };
    SchemeInformation: {
      /** @description Type of the list, which determines the types of its services: http://uri.etsi.org/19602/LoTEType/EUPIDProvidersList, http://uri.etsi.org/19602/LoTEType/EUWalletProvidersList, http://uri.etsi.org/19602/LoTEType/EUWRPACProvidersList, http://uri.etsi.org/19602/LoTEType/EUWRPRCProvidersList, http://uri.etsi.org/19602/LoTEType/EUPubEAAProvidersList, http://trust.ec.europa.eu/lists/mDL/mDLProvidersListType; without one of these, issuers of any attestations */
      LoTEType?: string;
      /** @description Default: the name of the tenant */
      SchemeOperatorName?: {
        lang: string;
        value: string;
      }[];
      SchemeOperatorAddress?: {
        SchemeOperatorPostalAddress: {
          lang: string;
          StreetAddress: string;
          Locality?: string;
          StateOrProvince?: string;
          PostalCode?: string;
          Country: string;
        }[];
        SchemeOperatorElectronicAddress: {
          lang: string;
          uriValue: string;
        }[];
      };
      SchemeName?: {
        lang: string;
        value: string;
      }[];
      SchemeInformationURI?: {
        lang: string;
        uriValue: string;
      }[];
      StatusDeterminationApproach?: string;
      SchemeTypeCommunityRules?: {
        lang: string;
        uriValue: string;
      }[];
      SchemeTerritory?: string;
      /** @description Either addresses of policies or texts of notices */
      PolicyOrLegalNotice?: ({
        LoTEPolicy: {
          lang: string;
          uriValue: string;
        };
      } | {
        LoTELegalNotice: string;
      })[];
      HistoricalInformationPeriod?: number;
      DistributionPoints?: string[];
    };
    TrustListUpdate: {
      id?: string;
      description?: string | null;
      /** @description Key chain that signs the list. Default: the first usable one for `trustList` */
      keyChainId?: string | null;
      entities?: components["schemas"]["TrustListEntity"][];
      /** @description Only in responses; write `entities` */
      entityConfig?: unknown;
      /** @description Scheme information of the list, in the structure of the document */
      data?: components["schemas"]["TrustListData"] | null;
      /** @description The former name of `keyChainId`. A request that has both with different values is rejected with 400 */
      certId?: string | null;
      readonly tenantId?: string;
      readonly tenant?: components["schemas"]["TenantReference"];
      /** @description Null: the signing key chain was deleted */
      readonly cert?: components["schemas"]["Certificate"] | null;
      /** @description Increases with every write and every signature */
      readonly sequenceNumber?: number;
      /** @description The signed list as it is published */
      readonly jwt?: string;
      /** Format: date-time */
      readonly createdAt?: string;
      /**
       * Format: date-time
       * @description Time of the last signature
       */
      readonly updatedAt?: string;
      /** @description Rules of wallets, verifiers or laws that the stored object violates */
      readonly warnings?: components["schemas"]["Warning"][];
    };
    SignerConfirmation: {
      /** @description Fingerprint of the confirmed certificate, compared with the one that its operator published: SHA-256, base64url, or hex with or without colons */
      fingerprint: string;
    };
    RegistrarConfigurationInput: {
      /** @description Base of the API of the registrar, without query and fragment */
      registrarUrl: string;
      /** @description OpenID provider of the registrar, found by OpenID Connect Discovery */
      oidcUrl: string;
      /** @description Client of the service at the OpenID provider */
      clientId: string;
      clientSecret?: string | null;
      /** @description Account at the registrar */
      username: string;
      /** @description Password of the account; sealed at rest and never shown again */
      password: string;
      registrationCertificateAnchors?: string[] | null;
      registrationCertificateDefaults?: {
        /** @description Address of the policy for users */
        privacy_policy?: string;
        support_uri?: string;
        /** @description Purpose of the request, by language */
        purpose?: {
          lang: string;
          content: string;
        }[];
        /** @description Intermediary of the relying party, by its name at the registrar */
        intermediary?: string | {
          sub: string;
          sname?: string;
        };
      } | null;
      readonly hasClientSecret?: boolean;
      readonly hasPassword?: boolean;
      readonly tenantId?: string;
      readonly tenant?: components["schemas"]["TenantReference"];
      /** Format: date-time */
      readonly createdAt?: string;
      /** Format: date-time */
      readonly updatedAt?: string;
      /** @description Rules of wallets, verifiers or laws that the stored object violates */
      readonly warnings?: components["schemas"]["Warning"][];
    };
    RegistrarConfigurationUpdate: {
      /** @description Base of the API of the registrar, without query and fragment */
      registrarUrl?: string;
      /** @description OpenID provider of the registrar, found by OpenID Connect Discovery */
      oidcUrl?: string;
      /** @description Client of the service at the OpenID provider */
      clientId?: string;
      clientSecret?: string | null;
      /** @description Account at the registrar */
      username?: string;
      /** @description Password of the account; sealed at rest and never shown again */
      password?: string;
      registrationCertificateAnchors?: string[] | null;
      registrationCertificateDefaults?: {
        /** @description Address of the policy for users */
        privacy_policy?: string;
        support_uri?: string;
        /** @description Purpose of the request, by language */
        purpose?: {
          lang: string;
          content: string;
        }[];
        /** @description Intermediary of the relying party, by its name at the registrar */
        intermediary?: string | {
          sub: string;
          sname?: string;
        };
      } | null;
      readonly hasClientSecret?: boolean;
      readonly hasPassword?: boolean;
      readonly tenantId?: string;
      readonly tenant?: components["schemas"]["TenantReference"];
      /** Format: date-time */
      readonly createdAt?: string;
      /** Format: date-time */
      readonly updatedAt?: string;
      /** @description Rules of wallets, verifiers or laws that the stored object violates */
      readonly warnings?: components["schemas"]["Warning"][];
    };
    AccessCertificateOrder: {
      /** @description A key chain with only the usage `access` */
      keyChainId?: string;
      /** @description Host names for the certificate. Default: that of `PUBLIC_URL` */
      dns?: string[];
      /** @description Relying party of the account. Default: the first */
      rpId?: string;
      /** @description The former name of `keyChainId`. A request that has both with different values is rejected with 400 */
      certId?: string;
    } & (unknown | unknown);
    RegistrationCertificateOrder: {
      /** @description A certificate of another source */
      jwt?: string;
      /** @description A certificate that the registrar has issued */
      id?: string;
      /** @description A certificate to be issued, in a configuration with the role `registrar:manage`. `credentials` is derived from the query by default; `privacy_policy`, `support_uri` and `purpose` default to those of the registrar configuration, `purpose` primarily to `purpose` of the configuration */
      body?: {
        /** @description Address of the policy for users */
        privacy_policy?: string;
        support_uri?: string;
        /** @description Intermediary of the relying party, by its name at the registrar */
        intermediary?: string | {
          sub: string;
          sname?: string;
        };
        /** @description Purpose of the request, by language */
        purpose?: {
          lang: string;
          content: string;
        }[];
        credentials?: {
          format: string;
          meta: {
            [key: string]: components["schemas"]["Json"];
          };
          claims?: {
            path: (string | null | number)[];
          }[];
        }[];
        provided_attestations?: {
          format: string;
          meta: {
            [key: string]: components["schemas"]["Json"];
          };
        }[];
      };
      /** @description Its presentation configuration: `credentials` are derived from its query, which the certificate must cover */
      presentationConfigurationId?: string;
    } & (unknown | unknown | unknown);
    WebhookSecretUpdate: {
      /**
       * @description `v1`: calls are signed (Standard Webhooks); `off`: they are not signed
       * @enum {string}
       */
      signing: "v1" | "off";
      /** @description Time of creation of the present secret; null if none was returned yet, so that no backend can verify signatures */
      readonly createdAt?: string | null;
      /** @description Former secrets that still sign, the newest first; at most 3 */
      readonly former?: {
        /** Format: date-time */
        createdAt: string;
        /**
         * Format: date-time
         * @description Until then calls are also signed with it
         */
        signsUntil: string;
      }[];
      /** @description Rules of wallets, verifiers or laws that the stored object violates */
      readonly warnings?: components["schemas"]["Warning"][];
    };
    WebhookSecretRotation: {
      /** @description Seconds that the present secret continues to sign together with the new one. Default: 86400. With 0 nothing but the new one signs from now on */
      overlapSeconds?: number | null;
      /**
       * @description `v1`: calls are signed (Standard Webhooks); `off`: they are not signed
       * @enum {string}
       */
      readonly signing?: "v1" | "off";
      /** @description Time of creation of the present secret; null if none was returned yet, so that no backend can verify signatures */
      readonly createdAt?: string | null;
      /** @description Former secrets that still sign, the newest first; at most 3 */
      readonly former?: {
        /** Format: date-time */
        createdAt: string;
        /**
         * Format: date-time
         * @description Until then calls are also signed with it
         */
        signsUntil: string;
      }[];
      /** @description `whsec_` and base64. Shown once. Save it now. */
      readonly secret?: string;
    };
    ClaimsRequest: {
      /** @description The session id in the response of `POST /issuer/offer` or `/verifier/offer` */
      session: string;
      /** @description `reference` of that offer or presentation request; absent if it had none or if the session was erased */
      reference?: string;
      /** @description Credential to be issued */
      credential_configuration_id: string;
      /** @description Identity of the user. Empty for a pre-authorized code. With the chained server, the user at its upstream provider and the claims of the login; with an external server, `sub` and claims of its access token. With the built-in server, the claims of its own access token, which identify no user, since its page has no login. */
      identity: {
        /** @description Issuer of the identity: the login provider, or the server of the token */
        iss?: string;
        /** @description The user at `iss`; without a login, an identifier of this offer */
        sub?: string;
        /** @description All claims of the verified tokens */
        token_claims?: {
          [key: string]: unknown;
        };
      };
      /** @description Presentations of an interactive authorization; otherwise empty */
      credentials: components["schemas"]["PresentedCredential"][];
    };
    /** @description Result of one credential query */
    PresentedCredential: {
      /** @description Id of the credential query */
      id: string;
      /** @description Verified claims; an array for a query with `multiple` */
      values?: {
        [key: string]: unknown;
      } | {
        [key: string]: unknown;
      }[];
      /** @description Signer; an array for an array of `values` */
      issuer?: components["schemas"]["PresentedIssuer"] | components["schemas"]["PresentedIssuer"][];
      /** @description User authentication by the wallet, beside a confirmed transaction of TS12 (docs/reference/verifying.md) */
      authentication?: {
        /** @description The authentication code */
        jti: string;
        /** @description Factors by category */
        amr: {
          [key: string]: string;
        }[];
      };
      /**
       * @description Reason for absent `values`, see docs/reference/errors.md. `missing`: no presentation; `response_refused`: it was valid, but another part of the response was not
       * @enum {string}
       */
      error?: "malformed" | "issuer_typ" | "issuer_alg" | "issuer_key_unresolved" | "issuer_signature" | "untrusted_chain" | "certificate_expired" | "certificate_profile" | "x5c_contains_anchor" | "certificate_revoked" | "revocation_unavailable" | "unsupported_crit" | "unsupported_hash" | "duplicate_digest" | "duplicate_disclosure" | "unreferenced_disclosure" | "wrong_disclosure_length" | "malformed_disclosure" | "reserved_claim_name" | "claim_exists" | "forbidden_disclosure" | "malformed_sd" | "malformed_array_digest" | "nested_sd_alg" | "reserved_key" | "too_deep" | "credential_expired" | "credential_not_yet_valid" | "holder_binding_missing" | "holder_key_missing" | "kb_typ" | "kb_alg" | "kb_signature" | "kb_iat_window" | "kb_claim_missing" | "kb_claim_type" | "credential_audience" | "aud_mismatch" | "aud_not_string" | "nonce_mismatch" | "sd_hash_mismatch" | "transaction_data_missing" | "transaction_data_mismatch" | "transaction_data_alg" | "strong_authentication" | "digest_mismatch" | "duplicate_element" | "doctype_mismatch" | "signed_outside_certificate" | "issuer_country_mismatch" | "repeated_credential" | "unsupported_version" | "device_auth_missing" | "device_alg" | "device_signature" | "key_authorization" | "response_status" | "multiple_documents" | "format_mismatch" | "type_mismatch" | "missing_claim" | "value_mismatch" | "claim_set_unsatisfied" | "untrusted_authority" | "type_metadata_unavailable" | "type_metadata_invalid" | "type_metadata_broken" | "status_revoked" | "status_suspended" | "status_unknown" | "status_unavailable" | "status_invalid" | "missing" | "response_refused";
    };
    /** @description Signer of a credential */
    PresentedIssuer: {
      /** @description Name in the certificate of the signer (RFC 4514) */
      subject: string;
      /** @description SHA-256 of that certificate, base64url */
      fingerprint: string;
      /** @description SHA-256 of its trust anchor, base64url */
      anchor: string;
      /** @description Addresses of trust lists with the anchor; absent for a configured anchor */
      listed?: {
        entity: string;
        list: string;
        sequenceNumber: number;
      }[];
    };
    NotificationDelivery: {
      /** @description The session id in the response of `POST /issuer/offer` or `/verifier/offer` */
      session: string;
      /** @description `reference` of that offer or presentation request; absent if it had none or if the session was erased */
      reference?: string;
      notification: {
        /** @description The `notification_id`, one for all credentials of one response */
        id: string;
        /**
         * @description `credential_revoked` comes from the service and not from the wallet: the credentials were revoked with their wallet
         * @enum {string}
         */
        event: "credential_accepted" | "credential_failure" | "credential_deleted" | "credential_revoked";
        credentialConfigurationId: string;
        /** @description Text of the wallet or of the service */
        eventDescription?: string;
      };
    };
    PresentationDelivery: {
      /** @description The session id in the response of `POST /issuer/offer` or `/verifier/offer` */
      session: string;
      /** @description `reference` of that offer or presentation request; absent if it had none or if the session was erased */
      reference?: string;
      /** @description One entry per credential query; optional ones may be absent */
      credentials: components["schemas"]["PresentedCredential"][];
    };
    WebStepQuestion: {
      /** @description The session id in the response of `POST /issuer/offer` or `/verifier/offer` */
      session: string;
      /** @description `reference` of that offer or presentation request; absent if it had none or if the session was erased */
      reference?: string;
      /** @description The visit, by `{auth_session}` in the address of the page */
      auth_session: string;
    };
    AccessToken: {
      access_token: string;
      /** @constant */
      token_type: "Bearer";
      /** @description Seconds */
      expires_in: number;
    };
    ProtocolError: {
      error: string;
      error_description?: string;
    } & {
      [key: string]: unknown;
    };
    ConsoleLogin: {
      /** @description OpenID provider of the operator for the login with the code flow and PKCE; absent: login with the credentials of a client */
      provider?: {
        issuer: string;
        clientId: string;
      };
    };
    Problem: {
      type: string;
      title: string;
      status: number;
      detail: string;
      /**
       * @description Machine-readable code; docs/reference/errors.md has cause and fix of each
       * @enum {string}
       */
      code: "invalid_input" | "unauthenticated" | "forbidden" | "not_found" | "method_not_allowed" | "conflict" | "session_quota_exceeded" | "gone" | "too_large" | "unsupported_media_type" | "too_many_requests" | "unavailable" | "invalid_request" | "invalid_client" | "invalid_grant" | "unsupported_grant_type" | "unauthorized_client" | "unsupported_response_type" | "request_not_supported" | "invalid_target" | "invalid_client_attestation" | "use_attestation_challenge" | "use_fresh_attestation" | "invalid_scope" | "invalid_authorization_details" | "invalid_dpop_proof" | "use_dpop_nonce" | "missing_token" | "invalid_token" | "insufficient_scope" | "missing_interaction_type" | "redirect_to_web" | "invalid_session" | "access_denied" | "invalid_credential_request" | "unknown_credential_configuration" | "unknown_credential_identifier" | "invalid_proof" | "invalid_nonce" | "invalid_encryption_parameters" | "credential_request_denied" | "invalid_transaction_id" | "issuance_pending" | "invalid_notification_id" | "invalid_notification_request" | "internal_error";
      requestId: string;
      errors?: {
        path: string;
        message: string;
      }[];
    };
    /** @description Client or user of an access token */
    Identity: {
      clientId: string;
      /** @description Absent for an account that manages tenants */
      tenantId?: string;
      roles: components["schemas"]["Role"][];
    };
    /** @description A tenant with its clients */
    Tenant: {
      id: string;
      name: string;
      description: string | null;
      /** @enum {string} */
      status: "active" | "suspended";
      /** @description Null: the global defaults */
      sessionConfig: {
        /** @description Null: the global default */
        ttlSeconds: number | null;
        /** @enum {string} */
        cleanupMode: "full" | "anonymize";
      } | null;
      /** @description Null: the global defaults */
      statusListConfig: components["schemas"]["StatusListConfig"] | null;
      /** @description Provider of its next keys; null: the one of `KMS_CONFIG` */
      kms: string | null;
      /** @description Profile of the tenant */
      profile: ("haip" | "eu") | null;
      /** @description Time of its automatic removal with all its data; null: never */
      endsAt: string | null;
      /** @description Its legal name; null: `name` */
      organization: string | null;
      organizationIdentifier: string | null;
      country: string | null;
      contact: string | null;
      address: components["schemas"]["TenantAddress"] | null;
      /** Format: date-time */
      createdAt: string;
      /** Format: date-time */
      updatedAt: string;
      clients: components["schemas"]["Client"][];
    };
    /** @description A client. Its secret is stored hashed and never shown here. */
    Client: {
      clientId: string;
      roles: components["schemas"]["Role"][];
      description: string | null;
      tenantId: string | null;
      tenant: components["schemas"]["TenantReference"] | null;
      /** @description Ids of the configurations that the client may use; empty or null means all */
      allowedPresentationConfigs: string[] | null;
      /** @description Ids of the configurations that the client may use; empty or null means all */
      allowedIssuanceConfigs: string[] | null;
      /** Format: date-time */
      createdAt: string;
      /** Format: date-time */
      updatedAt: string;
    };
    /** @description The tenant that this belongs to */
    TenantReference: {
      id: string;
      name: string;
      description: string | null;
      /** @enum {string} */
      status: "active" | "suspended";
      /** Format: date-time */
      createdAt: string;
    };
    /** @description A tenant; the secret of a new administrator is shown once */
    WrittenTenant: {
      id: string;
      name: string;
      description: string | null;
      /** @enum {string} */
      status: "active" | "suspended";
      /** @description Null: the global defaults */
      sessionConfig: {
        /** @description Null: the global default */
        ttlSeconds: number | null;
        /** @enum {string} */
        cleanupMode: "full" | "anonymize";
      } | null;
      /** @description Null: the global defaults */
      statusListConfig: components["schemas"]["StatusListConfig"] | null;
      /** @description Provider of its next keys; null: the one of `KMS_CONFIG` */
      kms: string | null;
      /** @description Profile of the tenant */
      profile: ("haip" | "eu") | null;
      /** @description Time of its automatic removal with all its data; null: never */
      endsAt: string | null;
      /** @description Its legal name; null: `name` */
      organization: string | null;
      organizationIdentifier: string | null;
      country: string | null;
      contact: string | null;
      address: components["schemas"]["TenantAddress"] | null;
      /** Format: date-time */
      createdAt: string;
      /** Format: date-time */
      updatedAt: string;
      clients: {
        clientId: string;
        roles: components["schemas"]["Role"][];
        description: string | null;
        tenantId: string | null;
        tenant: components["schemas"]["TenantReference"] | null;
        /** @description Ids of the configurations that the client may use; empty or null means all */
        allowedPresentationConfigs: string[] | null;
        /** @description Ids of the configurations that the client may use; empty or null means all */
        allowedIssuanceConfigs: string[] | null;
        /** Format: date-time */
        createdAt: string;
        /** Format: date-time */
        updatedAt: string;
        /** @description Shown once, after its creation */
        secret?: string;
      }[];
      /** @description Rules of wallets, verifiers or laws that the stored object violates */
      warnings: components["schemas"]["Warning"][];
    };
    /** @description Allowed, but some wallets or readers will reject it */
    Warning: {
      /** @description Source of the rule, such as `RFC 9901 section 9.5`, or `HAIP 1.0 section 5.1` under a profile */
      rule: string;
      /** @description Path of the property, dotted; empty for the whole document */
      member: string;
      /** @description Party that rejects it, or is harmed */
      concerns: string;
      /** @description Effect of the present value */
      message: string;
      /** @description What to change */
      change: string;
    };
    /** @description The id of the deleted object */
    Deleted: {
      id: string;
    };
    /** @description A removed tenant whose data is still being removed */
    TenantRemoval: {
      id: string;
      /**
       * Format: date-time
       * @description Time of the removal of the tenant
       */
      since: string;
      /** @description Rows of its data that were removed so far */
      removedRows: number;
    };
    Offer: {
      uri: string;
      session: string;
      crossDeviceUri?: string;
      /** @description A page for the user, with the QR code, the link and the offered or requested data; see docs/reference/pages-for-users.md. Like the link, it lets any holder accept the offer. Absent with dc-api, and with `requireResponseCode: true` */
      pageUrl?: string;
      /** @description Experimental: the offer for the Digital Credentials API */
      dcApi?: {
        protocol: string;
        data: {
          [key: string]: unknown;
        };
      };
      /** @description Absent without warnings */
      warnings?: components["schemas"]["Warning"][];
    };
    IssuanceConfiguration: {
      /** @description Display of the issuer in wallets, by language; an empty list omits it */
      display: components["schemas"]["DisplayInfoOutput"][];
      /** @description Further design of end-user pages; see docs/reference/pages-for-users.md */
      pages?: components["schemas"]["PageSettings"] | null;
      /** @description Key chain with the usage `signing` for access tokens of wallets. Default: the oldest one with this usage. Credentials are signed by `keyChainId` of their configuration */
      signingKeyId?: string | null;
      /** @description Maximum number of keys, and thus credentials, in one credential request; 0 and 1 allow one */
      batchSize: number;
      /** @description Rejects access tokens that are not bound to a key (RFC 9449) */
      dPopRequired: boolean;
      /** @enum {string} */
      dPopNonce: "off" | "optional" | "required";
      walletAttestationRequired: boolean;
      /** @description Addresses of lists of trusted entities (ETSI TS 119 602) as compact JWS with `x5c` (JAdES baseline B-B), at most 2 MiB, used for an hour at most and never past `NextUpdate`. Certificates of services of the types `http://uri.etsi.org/19602/SvcType/WalletSolution/Issuance` and `…/WalletProvider` are trusted for wallet and key attestations, those of `…/WalletSolution/Revocation` of the same entity for their status; a service with a `ServiceStatus` is ignored */
      walletProviderTrustLists: string[];
      /** @description Allowed signers of these lists: the certificate of a signer or of its CA, one PEM each; a list that none of them certifies is not used. If it is absent, the lists are fetched when they are written, and their signers are stored here from then on. Lists of this service are signed by its own keys */
      walletProviderTrustListCertificates: string[];
      /** @description Accepted signature algorithms of wallets, their providers and registered clients: proofs and the keys that credentials are bound to, attestations, DPoP proofs and client assertions. Metadata list them. Default: all of them, under the profile `eu` all except `EdDSA`, which is not an agreed algorithm of the ECCG. The keys of the tenant are not affected */
      algorithms?: ("ES256" | "ES384" | "ES512" | "EdDSA")[] | null;
      /** @description Maximum age of a wallet attestation by its `iat`, which is then required. Default: until it expires */
      attestationMaxAgeSeconds?: number | null;
      /** @enum {string} */
      attestationChallenge: "required" | "optional";
      /** @description Seconds for which wallet providers have to maintain the status of the wallet attestations that wallets send (`preferred_client_status_period` of the metadata, TS3 1.5 section 2.4); for credentials that follow that status, at least their lifetime. Default: the choice of the wallet */
      preferredClientStatusPeriod?: number | null;
      /** @description Wallets that authenticate only by `private_key_jwt` */
      walletClients: components["schemas"]["WalletClientOutput"][];
      /** @description Settings for single wallet providers on the lists */
      walletProviders: components["schemas"]["WalletProviderOutput"][];
      /** @description The built-in authorization server */
      builtInAs?: {
        /** @description false: it is disabled. Metadata do not contain it, its endpoints return 404, and its access tokens become invalid. Offers by pre-authorized code and configurations with `iaeActions` require it */
        enabled: boolean;
        /** @description Lets wallets begin without an offer. The page asks for approval without a login, so any user gets the credentials that have no `iaeActions`. At the chained and external servers wallets may always begin without an offer */
        walletInitiated: boolean;
      } | null;
      /** @description Issuers of external authorization servers, exactly as in their metadata and tokens. Their access tokens are JWTs signed with a key that the server publishes, `typ` `at+jwt`, `JWT` or none, with `iss`, `exp`, `sub`, `aud` containing `<PUBLIC_URL>/<tenant>`, and `authorization_details` of type `openid_credential` or, without any, `scope`, which list the credentials that they cover; `cnf.jkt` binds them by DPoP; `issuer_state` identifies the offer. Symmetric algorithms and ID tokens are rejected */
      authServers: string[];
      /** @description A server where users log in at your OpenID provider; register `<PUBLIC_URL>/<tenant>/chained-as/callback` there. The claims webhook gets the claims of the login as `identity` */
      chainedAs?: components["schemas"]["ChainedAsConfigOutput"] | null;
      /** @description Listed first in the metadata, since many wallets use the first one, and used by offers without a server. `built-in`, one of `authServers`, or the enabled chained server as `<PUBLIC_URL>/<tenant>/chained-as`. Default: external servers first, then the chained one, then the built-in one */
      preferredAuthServer?: string | null;
      /** @description The registration certificate of the issuer, by value in `issuer_info` of the metadata (ETSI TS 119 472-3 section 4.2.3): sent as jwt, or issued by the registrar of the tenant, with the role `registrar:manage`. It must cover every type that is issued; `provided_attestations` of body are derived from these by default. Required under the profile `eu` */
      registrationCert?: components["schemas"]["RegistrationCertificateRequestOutput"] | null;
      /** @description Lifetime of refresh tokens, also beyond the session of the offer; claims of the offer are removed with that session. 0: no refresh tokens */
      refreshTokenSeconds: number;
      /**
       * @description encrypted credential requests
       * @enum {string}
       */
      requestEncryption: "off" | "optional" | "required";
      /**
       * @description encrypted credential responses
       * @enum {string}
       */
      responseEncryption: "off" | "optional" | "required";
      tenant: components["schemas"]["TenantReference"];
      /** Format: date-time */
      createdAt: string;
      /** Format: date-time */
      updatedAt: string;
    };
    WrittenIssuanceConfiguration: {
      /** @description Display of the issuer in wallets, by language; an empty list omits it */
      display: components["schemas"]["DisplayInfoOutput"][];
      /** @description Further design of end-user pages; see docs/reference/pages-for-users.md */
      pages?: components["schemas"]["PageSettings"] | null;
      /** @description Key chain with the usage `signing` for access tokens of wallets. Default: the oldest one with this usage. Credentials are signed by `keyChainId` of their configuration */
      signingKeyId?: string | null;
      /** @description Maximum number of keys, and thus credentials, in one credential request; 0 and 1 allow one */
      batchSize: number;
      /** @description Rejects access tokens that are not bound to a key (RFC 9449) */
      dPopRequired: boolean;
      /** @enum {string} */
      dPopNonce: "off" | "optional" | "required";
      walletAttestationRequired: boolean;
      /** @description Addresses of lists of trusted entities (ETSI TS 119 602) as compact JWS with `x5c` (JAdES baseline B-B), at most 2 MiB, used for an hour at most and never past `NextUpdate`. Certificates of services of the types `http://uri.etsi.org/19602/SvcType/WalletSolution/Issuance` and `…/WalletProvider` are trusted for wallet and key attestations, those of `…/WalletSolution/Revocation` of the same entity for their status; a service with a `ServiceStatus` is ignored */
      walletProviderTrustLists: string[];
      /** @description Allowed signers of these lists: the certificate of a signer or of its CA, one PEM each; a list that none of them certifies is not used. If it is absent, the lists are fetched when they are written, and their signers are stored here from then on. Lists of this service are signed by its own keys */
      walletProviderTrustListCertificates: string[];
      /** @description Accepted signature algorithms of wallets, their providers and registered clients: proofs and the keys that credentials are bound to, attestations, DPoP proofs and client assertions. Metadata list them. Default: all of them, under the profile `eu` all except `EdDSA`, which is not an agreed algorithm of the ECCG. The keys of the tenant are not affected */
      algorithms?: ("ES256" | "ES384" | "ES512" | "EdDSA")[] | null;
      /** @description Maximum age of a wallet attestation by its `iat`, which is then required. Default: until it expires */
      attestationMaxAgeSeconds?: number | null;
      /** @enum {string} */
      attestationChallenge: "required" | "optional";
      /** @description Seconds for which wallet providers have to maintain the status of the wallet attestations that wallets send (`preferred_client_status_period` of the metadata, TS3 1.5 section 2.4); for credentials that follow that status, at least their lifetime. Default: the choice of the wallet */
      preferredClientStatusPeriod?: number | null;
      /** @description Wallets that authenticate only by `private_key_jwt` */
      walletClients: components["schemas"]["WalletClientOutput"][];
      /** @description Settings for single wallet providers on the lists */
      walletProviders: components["schemas"]["WalletProviderOutput"][];
      /** @description The built-in authorization server */
      builtInAs?: {
        /** @description false: it is disabled. Metadata do not contain it, its endpoints return 404, and its access tokens become invalid. Offers by pre-authorized code and configurations with `iaeActions` require it */
        enabled: boolean;
        /** @description Lets wallets begin without an offer. The page asks for approval without a login, so any user gets the credentials that have no `iaeActions`. At the chained and external servers wallets may always begin without an offer */
        walletInitiated: boolean;
      } | null;
      /** @description Issuers of external authorization servers, exactly as in their metadata and tokens. Their access tokens are JWTs signed with a key that the server publishes, `typ` `at+jwt`, `JWT` or none, with `iss`, `exp`, `sub`, `aud` containing `<PUBLIC_URL>/<tenant>`, and `authorization_details` of type `openid_credential` or, without any, `scope`, which list the credentials that they cover; `cnf.jkt` binds them by DPoP; `issuer_state` identifies the offer. Symmetric algorithms and ID tokens are rejected */
      authServers: string[];
      /** @description A server where users log in at your OpenID provider; register `<PUBLIC_URL>/<tenant>/chained-as/callback` there. The claims webhook gets the claims of the login as `identity` */
      chainedAs?: components["schemas"]["ChainedAsConfigOutput"] | null;
      /** @description Listed first in the metadata, since many wallets use the first one, and used by offers without a server. `built-in`, one of `authServers`, or the enabled chained server as `<PUBLIC_URL>/<tenant>/chained-as`. Default: external servers first, then the chained one, then the built-in one */
      preferredAuthServer?: string | null;
      /** @description The registration certificate of the issuer, by value in `issuer_info` of the metadata (ETSI TS 119 472-3 section 4.2.3): sent as jwt, or issued by the registrar of the tenant, with the role `registrar:manage`. It must cover every type that is issued; `provided_attestations` of body are derived from these by default. Required under the profile `eu` */
      registrationCert?: components["schemas"]["RegistrationCertificateRequestOutput"] | null;
      /** @description Lifetime of refresh tokens, also beyond the session of the offer; claims of the offer are removed with that session. 0: no refresh tokens */
      refreshTokenSeconds: number;
      /**
       * @description encrypted credential requests
       * @enum {string}
       */
      requestEncryption: "off" | "optional" | "required";
      /**
       * @description encrypted credential responses
       * @enum {string}
       */
      responseEncryption: "off" | "optional" | "required";
      tenant: components["schemas"]["TenantReference"];
      /** Format: date-time */
      createdAt: string;
      /** Format: date-time */
      updatedAt: string;
      /** @description Rules of wallets, verifiers or laws that the stored object violates */
      warnings: components["schemas"]["Warning"][];
    };
    CredentialConfiguration: {
      /** @description `credential_configuration_id` of wallets and offers */
      id: string;
      /** @description Published metadata of the credential, and its format */
      config: components["schemas"]["CredentialConfigOutput"];
      /** @description For administrators, and in the metadata of a hosted type */
      description?: string | null;
      /** @description dc+sd-jwt: the type, or its metadata, which the service hosts if they name no type. The rules of the metadata for claims (`mandatory`, `sd`) apply to every credential */
      vct?: (string | components["schemas"]["TypeMetadataOutput"]) | null;
      /** @description Writes the hash of the hosted metadata into credentials (`vct#integrity`). The document is kept as it is at that moment: its sources (vct, config.display, config.claims, frame, description, names of claims and schema) cannot be changed, nor the configuration deleted, until this is set to false; leaving it out keeps it. After that, wallets reject a changed document for issued credentials */
      vctIntegrity?: boolean | null;
      /** @description Static claims, the same for every holder; used if neither the offer nor `claimsWebhook` provides claims. mso_mdoc: elements, flat or keyed by namespace */
      claims?: Record<string, never> | null;
      /** @description Called for the claims when a wallet requests the credential; see `claims` among the webhooks */
      claimsWebhook?: {
        /** @description Public https, or an address that `OUTBOUND_ALLOW` names; redirects are not followed */
        url: string;
        /** @description Header with an API key; optional */
        auth?: {
          /** @constant */
          type: "apiKey";
          config: {
            /** @description Such as `Authorization`; no connection header, none that begins with `content-` or `webhook-` */
            headerName: string;
            /** @description The whole value of the header, such as `Bearer …`. Responses show `***`; written back for the same address and header, that keeps the stored value */
            value: string;
          };
        };
      } | null;
      /** @description Called for notifications of the wallet about a credential, unless the offer has a `notifyWebhook`; see `notification` among the webhooks */
      notificationWebhook?: {
        /** @description Public https, or an address that `OUTBOUND_ALLOW` names; redirects are not followed */
        url: string;
        /** @description Header with an API key; optional */
        auth?: {
          /** @constant */
          type: "apiKey";
          config: {
            /** @description Such as `Authorization`; no connection header, none that begins with `content-` or `webhook-` */
            headerName: string;
            /** @description The whole value of the header, such as `Bearer …`. Responses show `***`; written back for the same address and header, that keeps the stored value */
            value: string;
          };
        };
      } | null;
      /** @description Steps of the user before the issuance, in this order, in an interactive authorization. A presentation requires the role `presentation:manage` or `presentation:request`. With any step, the credential is issued only in this way: not by pre-authorized code, pushed request or external server */
      iaeActions?: components["schemas"]["InteractiveActionOutput"][] | null;
      /** @description `disclosure_policy` of the metadata: the relying parties that wallets may present it to; not enforced by the service */
      embeddedDisclosurePolicy?: components["schemas"]["DisclosurePolicyOutput"] | null;
      /** @description dc+sd-jwt: claims that holders may withhold. `_sd` lists properties of an object or positions of an array; other names and positions contain to frames below; `_sd_decoy` is a number of decoy digests. Without a frame all claims are always visible. For example `{"_sd": ["name", "address"], "address": {"_sd": ["street"]}, "degrees": {"_sd": [0, 1], "0": {"_sd": ["year"]}}}` */
      disclosureFrame?: Record<string, never> | null;
      /** @description Binds each credential to a key that the wallet proves; an mdoc is always bound */
      keyBinding: boolean;
      /** @description at least one; default jwt, with keyAttestationsRequired both */
      proofTypes?: ("jwt" | "attestation")[];
      /** @description Keys require an attestation of a provider on `walletProviderTrustLists`; without lists none is accepted. Default under the profile `eu`: any attestation */
      keyAttestationsRequired?: {
        /** @description Accepted attack resistance of the key storage, such as `iso_18045_high`, at least one. Default: any */
        key_storage?: string[];
        /** @description Accepted attack resistance of the user authentication for the key, at least one. Default: any */
        user_authentication?: string[];
        /** @description Seconds for which wallet providers have to maintain the status of the attestation (TS3 1.5 section 2.4); for credentials that follow it, at least their lifetime. Default: the choice of the wallet */
        preferred_key_storage_status_period?: number;
      } | null;
      /** @description How often wallets present one copy, and how many copies they store (ETSI TS 119 472-3 section 4.2.4.2); `credential_reuse_policy` of the metadata. Its batch sizes replace `batchSize` of the issuer. Required under the profile `eu` */
      credentialReusePolicy?: components["schemas"]["CredentialReusePolicy"] | null;
      /** @description Key chain with the usage `signing` that signs it. Default: the oldest one with this usage */
      keyChainId?: string | null;
      /** @description Gives each credential an entry in a status list; credentials without an entry cannot be revoked */
      statusManagement: boolean;
      /** @description Credentials follow their wallet: they expire before the time until which its provider maintains the status of the wallet and of its keys, and with statusManagement they are revoked when it revokes one of them. Default: true if attestations of wallets or keys are required; see docs/reference/wallet-attestations.md */
      followWalletStatus?: boolean | null;
      /** @description Maximum number of credential requests that one session (offer) answers with it, renewals included, for all wallets together. Default: 100. Further requests are denied */
      maxIssuances?: number | null;
      /** @description Claims that identify the subject of a credential, for `POST /credentials/revoke-by-subject`: paths such as `[["personal_administrative_number"]]`, for an mdoc namespace and element. A keyed hash of their values is stored while the credential is valid; credentials without these claims are not issued. Requires statusManagement */
      subjectClaims?: string[][] | null;
      /** @description The credentials of a new request revoke those of earlier requests of the session, so that a holder has one active set. Requires statusManagement, and a separate offer for each holder: wallets that share an offer revoke the credentials of each other */
      oneActiveSet?: boolean | null;
      /** @description seconds, from 60 to 100 years; without it an SD-JWT VC does not expire and an mdoc is valid for 90 days. It is never exceeded: the expiry is rounded down, to the day above two days and to the hour from two hours on; below, each copy expires earlier by a random part of up to a tenth */
      lifeTime?: number | null;
      /** @description JSON Schema 2020-12 that validates claims of every source. dc+sd-jwt: a text with `contentEncoding` `base64` is issued as a data URI of its `contentMediaType`; absent claims of the schema and the frame are replaced by decoys. References to other documents are rejected, as are more than 500 subschemas, 2,000 keywords, 64 levels, or 100 patterns of 10,000 characters together */
      schema?: Record<string, never> | null;
      /** @description Same value, under its former name */
      certId: string | null;
      /** @description Null: the default of the tenant signs */
      keyChain: components["schemas"]["KeyChain"] | null;
      /** @description Same value, under its former name */
      cert: components["schemas"]["Certificate"] | null;
      tenant: components["schemas"]["TenantReference"];
      /** Format: date-time */
      createdAt: string;
      /** Format: date-time */
      updatedAt: string;
    };
    /** @description A key with its certificates */
    KeyChain: {
      id: string;
      tenantId: string;
      description: string | null;
      /** @description The first of `usages`; null for a key without any */
      usageType: ("access" | "signing" | "trustList" | "statusList") | null;
      usages: ("access" | "signing" | "trustList" | "statusList")[];
      /** @constant */
      usage: "sign";
      kmsProvider: string;
      /** @description The provider's own name of the key; null for local keys */
      externalKeyId: string | null;
      rootKey: components["schemas"]["PublicKey"] | null;
      /** @description PEM; the anchor that relying parties configure */
      rootCertificate: string | null;
      activeKey: components["schemas"]["PublicKey"];
      /** @description PEM, leaf first */
      activeCertificate: string;
      /** Format: date-time */
      activeCertificateExpiry: string;
      /** @description Since when the active key is compromised: it signs nothing until the key chain is rotated. Null for no compromise */
      compromisedAt?: string | null;
      rotationEnabled: boolean;
      rotationIntervalDays: number;
      certValidityDays: number;
      lastRotatedAt: string | null;
      previousKey: components["schemas"]["PublicKey"] | null;
      previousCertificate: string | null;
      /** @description Time at which everything that it signed has expired; it is published until then */
      previousKeyExpiry: string | null;
      /** @description All valid former keys, newest first */
      previousKeys: {
        key: components["schemas"]["PublicKey"];
        /** @description PEM, leaf first */
        certificate: string;
        /** Format: date-time */
        expiry: string;
      }[];
      /** Format: date-time */
      createdAt: string;
      /** Format: date-time */
      updatedAt: string;
    };
    /** @description Public half as a JWK (RFC 7517); private keys are never shown */
    PublicKey: {
      kty: string;
      crv: string;
      x: string;
      y?: string;
      kid: string;
      alg: string;
      use: string;
    };
    /** @description A certificate chain and its key */
    Certificate: {
      /** @description The id of the key chain */
      id: string;
      /** @description Id of the key: the id of its first key chain */
      keyId: string;
      tenantId: string;
      description: string | null;
      /** @description PEM, leaf first, the internal authority last */
      crt: string[];
      /** Format: date-time */
      createdAt: string;
      /** Format: date-time */
      updatedAt: string;
      usages: {
        tenantId: string;
        certId: string;
        /** @enum {string} */
        usage: "access" | "signing" | "trustList" | "statusList";
        cert: {
          /** @description The id of the key chain */
          id: string;
          /** @description Id of the key: the id of its first key chain */
          keyId: string;
          tenantId: string;
          description: string | null;
          /** @description PEM, leaf first, the internal authority last */
          crt: string[];
          /** Format: date-time */
          createdAt: string;
          /** Format: date-time */
          updatedAt: string;
        };
      }[];
      key: components["schemas"]["Key"];
    };
    /** @description A key; its private part is never shown */
    Key: {
      /** @description The id of its first key chain */
      id: string;
      description: string | null;
      tenantId: string;
      key: components["schemas"]["PublicKey"];
      /** @constant */
      usage: "sign";
      kmsProvider: string;
      /** @description All certificates of this key */
      certificates: {
        id: string;
      }[];
      /** Format: date-time */
      createdAt: string;
      /** Format: date-time */
      updatedAt: string;
    };
    WrittenCredentialConfiguration: {
      /** @description `credential_configuration_id` of wallets and offers */
      id: string;
      /** @description Published metadata of the credential, and its format */
      config: components["schemas"]["CredentialConfigOutput"];
      /** @description For administrators, and in the metadata of a hosted type */
      description?: string | null;
      /** @description dc+sd-jwt: the type, or its metadata, which the service hosts if they name no type. The rules of the metadata for claims (`mandatory`, `sd`) apply to every credential */
      vct?: (string | components["schemas"]["TypeMetadataOutput"]) | null;
      /** @description Writes the hash of the hosted metadata into credentials (`vct#integrity`). The document is kept as it is at that moment: its sources (vct, config.display, config.claims, frame, description, names of claims and schema) cannot be changed, nor the configuration deleted, until this is set to false; leaving it out keeps it. After that, wallets reject a changed document for issued credentials */
      vctIntegrity?: boolean | null;
      /** @description Static claims, the same for every holder; used if neither the offer nor `claimsWebhook` provides claims. mso_mdoc: elements, flat or keyed by namespace */
      claims?: Record<string, never> | null;
      /** @description Called for the claims when a wallet requests the credential; see `claims` among the webhooks */
      claimsWebhook?: {
        /** @description Public https, or an address that `OUTBOUND_ALLOW` names; redirects are not followed */
        url: string;
        /** @description Header with an API key; optional */
        auth?: {
          /** @constant */
          type: "apiKey";
          config: {
            /** @description Such as `Authorization`; no connection header, none that begins with `content-` or `webhook-` */
            headerName: string;
            /** @description The whole value of the header, such as `Bearer …`. Responses show `***`; written back for the same address and header, that keeps the stored value */
            value: string;
          };
        };
      } | null;
      /** @description Called for notifications of the wallet about a credential, unless the offer has a `notifyWebhook`; see `notification` among the webhooks */
      notificationWebhook?: {
        /** @description Public https, or an address that `OUTBOUND_ALLOW` names; redirects are not followed */
        url: string;
        /** @description Header with an API key; optional */
        auth?: {
          /** @constant */
          type: "apiKey";
          config: {
            /** @description Such as `Authorization`; no connection header, none that begins with `content-` or `webhook-` */
            headerName: string;
            /** @description The whole value of the header, such as `Bearer …`. Responses show `***`; written back for the same address and header, that keeps the stored value */
            value: string;
          };
        };
      } | null;
      /** @description Steps of the user before the issuance, in this order, in an interactive authorization. A presentation requires the role `presentation:manage` or `presentation:request`. With any step, the credential is issued only in this way: not by pre-authorized code, pushed request or external server */
      iaeActions?: components["schemas"]["InteractiveActionOutput"][] | null;
      /** @description `disclosure_policy` of the metadata: the relying parties that wallets may present it to; not enforced by the service */
      embeddedDisclosurePolicy?: components["schemas"]["DisclosurePolicyOutput"] | null;
      /** @description dc+sd-jwt: claims that holders may withhold. `_sd` lists properties of an object or positions of an array; other names and positions contain to frames below; `_sd_decoy` is a number of decoy digests. Without a frame all claims are always visible. For example `{"_sd": ["name", "address"], "address": {"_sd": ["street"]}, "degrees": {"_sd": [0, 1], "0": {"_sd": ["year"]}}}` */
      disclosureFrame?: Record<string, never> | null;
      /** @description Binds each credential to a key that the wallet proves; an mdoc is always bound */
      keyBinding: boolean;
      /** @description at least one; default jwt, with keyAttestationsRequired both */
      proofTypes?: ("jwt" | "attestation")[];
      /** @description Keys require an attestation of a provider on `walletProviderTrustLists`; without lists none is accepted. Default under the profile `eu`: any attestation */
      keyAttestationsRequired?: {
        /** @description Accepted attack resistance of the key storage, such as `iso_18045_high`, at least one. Default: any */
        key_storage?: string[];
        /** @description Accepted attack resistance of the user authentication for the key, at least one. Default: any */
        user_authentication?: string[];
        /** @description Seconds for which wallet providers have to maintain the status of the attestation (TS3 1.5 section 2.4); for credentials that follow it, at least their lifetime. Default: the choice of the wallet */
        preferred_key_storage_status_period?: number;
      } | null;
      /** @description How often wallets present one copy, and how many copies they store (ETSI TS 119 472-3 section 4.2.4.2); `credential_reuse_policy` of the metadata. Its batch sizes replace `batchSize` of the issuer. Required under the profile `eu` */
      credentialReusePolicy?: components["schemas"]["CredentialReusePolicy"] | null;
      /** @description Key chain with the usage `signing` that signs it. Default: the oldest one with this usage */
      keyChainId?: string | null;
      /** @description Gives each credential an entry in a status list; credentials without an entry cannot be revoked */
      statusManagement: boolean;
      /** @description Credentials follow their wallet: they expire before the time until which its provider maintains the status of the wallet and of its keys, and with statusManagement they are revoked when it revokes one of them. Default: true if attestations of wallets or keys are required; see docs/reference/wallet-attestations.md */
      followWalletStatus?: boolean | null;
      /** @description Maximum number of credential requests that one session (offer) answers with it, renewals included, for all wallets together. Default: 100. Further requests are denied */
      maxIssuances?: number | null;
      /** @description Claims that identify the subject of a credential, for `POST /credentials/revoke-by-subject`: paths such as `[["personal_administrative_number"]]`, for an mdoc namespace and element. A keyed hash of their values is stored while the credential is valid; credentials without these claims are not issued. Requires statusManagement */
      subjectClaims?: string[][] | null;
      /** @description The credentials of a new request revoke those of earlier requests of the session, so that a holder has one active set. Requires statusManagement, and a separate offer for each holder: wallets that share an offer revoke the credentials of each other */
      oneActiveSet?: boolean | null;
      /** @description seconds, from 60 to 100 years; without it an SD-JWT VC does not expire and an mdoc is valid for 90 days. It is never exceeded: the expiry is rounded down, to the day above two days and to the hour from two hours on; below, each copy expires earlier by a random part of up to a tenth */
      lifeTime?: number | null;
      /** @description JSON Schema 2020-12 that validates claims of every source. dc+sd-jwt: a text with `contentEncoding` `base64` is issued as a data URI of its `contentMediaType`; absent claims of the schema and the frame are replaced by decoys. References to other documents are rejected, as are more than 500 subschemas, 2,000 keywords, 64 levels, or 100 patterns of 10,000 characters together */
      schema?: Record<string, never> | null;
      /** @description Same value, under its former name */
      certId: string | null;
      /** @description Null: the default of the tenant signs */
      keyChain: components["schemas"]["KeyChain"] | null;
      /** @description Same value, under its former name */
      cert: components["schemas"]["Certificate"] | null;
      tenant: components["schemas"]["TenantReference"];
      /** Format: date-time */
      createdAt: string;
      /** Format: date-time */
      updatedAt: string;
      /** @description Rules of wallets, verifiers or laws that the stored object violates */
      warnings: components["schemas"]["Warning"][];
    };
    DeferredTransaction: {
      transactionId: string;
      tenantId: string;
      sessionId: string;
      credentialConfigurationId: string;
      /** @description proven keys of the wallet, until the transaction ends */
      holderKeys: {
        [key: string]: unknown;
      }[];
      /** @enum {string} */
      status: "pending" | "ready" | "retrieved" | "failed" | "expired";
      /** @description until the wallet has fetched them */
      credentials?: string[];
      /** @description seconds between two polls of the wallet */
      interval: number;
      errorMessage?: string;
      /** Format: date-time */
      createdAt: string;
      /** Format: date-time */
      updatedAt: string;
      /** Format: date-time */
      expiresAt: string;
    };
    WrittenDeferredDecision: {
      transactionId: string;
      /** @enum {string} */
      status: "pending" | "ready" | "retrieved" | "failed" | "expired";
      message: string;
      /** @description Rules of wallets, verifiers or laws that the stored object violates */
      warnings: components["schemas"]["Warning"][];
    };
    DeferredDecision: {
      transactionId: string;
      /** @enum {string} */
      status: "pending" | "ready" | "retrieved" | "failed" | "expired";
      message: string;
    };
    PresentationOffer: {
      /** @description Starts the wallet on the device of the browser; for a QR code use `crossDeviceUri`. With dc-api: address from which the page fetches the request and to which it posts `data` of the returned credential */
      uri: string;
      /** @description For polling and events; never shown to a wallet */
      session: string;
      /** @description For a QR code. Belongs to the same session as `uri`; the wallet that uses it is not redirected to `redirectUri` and gets no response_code, so follow the session by its events. Absent with dc-api, and with `requireResponseCode: true` in the configuration, since no result is accepted without the response_code, which another device cannot return */
      crossDeviceUri?: string;
      /** @description A page for the user, with the QR code, the link and the offered or requested data; see docs/reference/pages-for-users.md. Like the link, it lets any holder accept the offer. Absent with dc-api, and with `requireResponseCode: true` */
      pageUrl?: string;
      dcApi?: components["schemas"]["DigitalCredentialRequests"];
    };
    /** @description The property `digital` of navigator.credentials.get */
    DigitalCredentialRequests: {
      requests: {
        protocol: string;
        data: {
          [key: string]: unknown;
        };
      }[];
    };
    PresentationConfiguration: {
      id: string;
      tenant: components["schemas"]["TenantReference"];
      description: string | null;
      dcql_query: {
        credentials: unknown[];
      } & {
        [key: string]: unknown;
      };
      /** @description Seconds for which a request can be answered */
      lifeTime: number;
      /** @enum {string} */
      responseMode: "direct_post.jwt" | "direct_post";
      /** @enum {string} */
      clientIdPrefix: "x509_hash" | "x509_san_dns" | "redirect_uri";
      /** @enum {string} */
      requestUriMethod: "get" | "post";
      invocationUri: string;
      clientName: string | null;
      logoUri: string | null;
      expectedOrigins: string[] | null;
      /** @enum {string} */
      dcApiRequest: "signed" | "unsigned" | "multisigned";
      furtherAccessKeyChainIds: string[] | null;
      dcApiProtocols: ("openid4vp" | "org-iso-mdoc")[];
      transaction_data: components["schemas"]["TransactionDataOutput"][] | null;
      transactionDataElements: {
        [key: string]: {
          namespace: string;
          element: string;
        };
      } | null;
      transactionDataSchemas: {
        [key: string]: "urn:eudi:sca:payment:1" | "urn:eudi:sca:login_risk_transaction:1" | "urn:eudi:sca:account_access:1" | "urn:eudi:sca:emandate:1";
      } | null;
      registrationCert: components["schemas"]["RegistrationCertificateRequestOutput"] | null;
      purpose: {
        lang: string;
        content: string;
      }[] | null;
      /** @description The key is shown as *** */
      webhook: {
        /** @description Public https, or an address that `OUTBOUND_ALLOW` names; redirects are not followed */
        url: string;
        /** @description Header with an API key; optional */
        auth?: {
          /** @constant */
          type: "apiKey";
          config: {
            /** @description Such as `Authorization`; no connection header, none that begins with `content-` or `webhook-` */
            headerName: string;
            /** @description The whole value of the header, such as `Bearer …`. Responses show `***`; written back for the same address and header, that keeps the stored value */
            value: string;
          };
        };
      } | null;
      attached: ({
        format: string;
      } & {
        [key: string]: unknown;
      })[] | null;
      redirectUri: string | null;
      /** @description Null: the default of the tenant */
      accessKeyChainId: string | null;
      /** @description Same value, under its former name */
      accessCertId: string | null;
      /** @description Trusted issuers */
      trustAnchors: components["schemas"]["TrustAnchorView"][];
      /** @description Null: iso-18013-5 */
      mdlProfile: ("iso-18013-5" | "none") | null;
      /** @description Null: off */
      typeMetadata: ("off" | "enforced") | null;
      /** @description Null: off */
      certificateRevocation: ("off" | "if-available" | "required") | null;
      /** @description Stored value. Null: true for responses on the same device under a profile, false without one. With true there is no crossDeviceUri */
      requireResponseCode: boolean | null;
      /** @description Null: disclosed */
      values: ("disclosed" | "requested") | null;
      /** Format: date-time */
      createdAt: string;
      /** Format: date-time */
      updatedAt: string;
    };
    TrustAnchorView: {
      /** @description PEM; a CA certificate, or the certificate of an issuer. Certificates of different keys have different key identifiers */
      certificate: string;
      /** @description true: signatures by this certificate are accepted, regardless of its name and usage, and nothing that it certified. Its validity and its key are checked. For an issuer whose certificate is marked as a CA; no profile allows it */
      pin?: boolean;
    } | {
      /**
       * @description all key chains of the tenant that issue credentials, at the time of the check
       * @constant
       */
      ownAuthorities: true;
    } | {
      /** @description address of a signed list of trusted entities (ETSI TS 119 602), or of a trusted list in XML (ETSI TS 119 612), whose signer `signedBy` names by its own certificate */
      trustList: string;
      /** @description PEM; allowed signers of the list: a certificate, or a CA. Optional only for a list of this service */
      signedBy?: string[];
      /** @description Services whose certificates are accepted. Default: http://uri.etsi.org/19602/SvcType/PID/Issuance, http://uri.etsi.org/19602/SvcType/PubEAA/Issuance, http://uri.etsi.org/19602/SvcType/EAA/Issuance, http://trust.ec.europa.eu/lists/mDL/SvcType/Issuance, http://uri.etsi.org/TrstSvc/Svctype/EAA/Q, http://uri.etsi.org/TrstSvc/Svctype/EAA/Pub-EAA, http://uri.etsi.org/TrstSvc/Svctype/EAA */
      serviceTypes?: string[];
      /**
       * @description Time at which the status of a service is evaluated: the time of the check (default), or the time at which its issuer states that the credential was issued, by the history of the service. An issuer with a compromised key, or without approval, can state any time
       * @enum {string}
       */
      serviceStatusAt?: "check" | "issuance";
      /** @description The list is a list of lists: the lists that it points to are trusted, each with the signer that it names, one level deep and at most 64 */
      follow?: components["schemas"]["ListOfLists"];
    } | {
      keyChainId: string;
      /** @description Same value, under its former name */
      certId: string;
    };
    WrittenPresentationConfiguration: {
      id: string;
      tenant: components["schemas"]["TenantReference"];
      description: string | null;
      dcql_query: {
        credentials: unknown[];
      } & {
        [key: string]: unknown;
      };
      /** @description Seconds for which a request can be answered */
      lifeTime: number;
      /** @enum {string} */
      responseMode: "direct_post.jwt" | "direct_post";
      /** @enum {string} */
      clientIdPrefix: "x509_hash" | "x509_san_dns" | "redirect_uri";
      /** @enum {string} */
      requestUriMethod: "get" | "post";
      invocationUri: string;
      clientName: string | null;
      logoUri: string | null;
      expectedOrigins: string[] | null;
      /** @enum {string} */
      dcApiRequest: "signed" | "unsigned" | "multisigned";
      furtherAccessKeyChainIds: string[] | null;
      dcApiProtocols: ("openid4vp" | "org-iso-mdoc")[];
      transaction_data: components["schemas"]["TransactionDataOutput"][] | null;
      transactionDataElements: {
        [key: string]: {
          namespace: string;
          element: string;
        };
      } | null;
      transactionDataSchemas: {
        [key: string]: "urn:eudi:sca:payment:1" | "urn:eudi:sca:login_risk_transaction:1" | "urn:eudi:sca:account_access:1" | "urn:eudi:sca:emandate:1";
      } | null;
      registrationCert: components["schemas"]["RegistrationCertificateRequestOutput"] | null;
      purpose: {
        lang: string;
        content: string;
      }[] | null;
      /** @description The key is shown as *** */
      webhook: {
        /** @description Public https, or an address that `OUTBOUND_ALLOW` names; redirects are not followed */
        url: string;
        /** @description Header with an API key; optional */
        auth?: {
          /** @constant */
          type: "apiKey";
          config: {
            /** @description Such as `Authorization`; no connection header, none that begins with `content-` or `webhook-` */
            headerName: string;
            /** @description The whole value of the header, such as `Bearer …`. Responses show `***`; written back for the same address and header, that keeps the stored value */
            value: string;
          };
        };
      } | null;
      attached: ({
        format: string;
      } & {
        [key: string]: unknown;
      })[] | null;
      redirectUri: string | null;
      /** @description Null: the default of the tenant */
      accessKeyChainId: string | null;
      /** @description Same value, under its former name */
      accessCertId: string | null;
      /** @description Trusted issuers */
      trustAnchors: components["schemas"]["TrustAnchorView"][];
      /** @description Null: iso-18013-5 */
      mdlProfile: ("iso-18013-5" | "none") | null;
      /** @description Null: off */
      typeMetadata: ("off" | "enforced") | null;
      /** @description Null: off */
      certificateRevocation: ("off" | "if-available" | "required") | null;
      /** @description Stored value. Null: true for responses on the same device under a profile, false without one. With true there is no crossDeviceUri */
      requireResponseCode: boolean | null;
      /** @description Null: disclosed */
      values: ("disclosed" | "requested") | null;
      /** Format: date-time */
      createdAt: string;
      /** Format: date-time */
      updatedAt: string;
      /** @description Rules of wallets, verifiers or laws that the stored object violates */
      warnings: components["schemas"]["Warning"][];
    };
    /** @description Result of a presentation for a query */
    PresentationTrial: {
      presentations: {
        /** @enum {string} */
        format: "dc+sd-jwt" | "mso_mdoc";
        /** @description As stated in the presentation, verified or not */
        types: string[];
        /** @description Paths of its claims, without their values, verified or not; absent if it cannot be parsed */
        shown?: (string | number | null)[][];
        /** @description Credential queries of its format, or the one that it satisfies */
        queries: {
          /** @description Id of the credential query */
          id: string;
          /** @enum {string} */
          result: "passed" | "failed";
          /** @enum {string} */
          reason?: "malformed" | "issuer_typ" | "issuer_alg" | "issuer_key_unresolved" | "issuer_signature" | "untrusted_chain" | "certificate_expired" | "certificate_profile" | "x5c_contains_anchor" | "certificate_revoked" | "revocation_unavailable" | "unsupported_crit" | "unsupported_hash" | "duplicate_digest" | "duplicate_disclosure" | "unreferenced_disclosure" | "wrong_disclosure_length" | "malformed_disclosure" | "reserved_claim_name" | "claim_exists" | "forbidden_disclosure" | "malformed_sd" | "malformed_array_digest" | "nested_sd_alg" | "reserved_key" | "too_deep" | "credential_expired" | "credential_not_yet_valid" | "holder_binding_missing" | "holder_key_missing" | "kb_typ" | "kb_alg" | "kb_signature" | "kb_iat_window" | "kb_claim_missing" | "kb_claim_type" | "credential_audience" | "aud_mismatch" | "aud_not_string" | "nonce_mismatch" | "sd_hash_mismatch" | "transaction_data_missing" | "transaction_data_mismatch" | "transaction_data_alg" | "strong_authentication" | "digest_mismatch" | "duplicate_element" | "doctype_mismatch" | "signed_outside_certificate" | "issuer_country_mismatch" | "repeated_credential" | "unsupported_version" | "device_auth_missing" | "device_alg" | "device_signature" | "key_authorization" | "response_status" | "multiple_documents" | "format_mismatch" | "type_mismatch" | "missing_claim" | "value_mismatch" | "claim_set_unsatisfied" | "untrusted_authority" | "type_metadata_unavailable" | "type_metadata_invalid" | "type_metadata_broken" | "status_revoked" | "status_suspended" | "status_unknown" | "status_unavailable" | "status_invalid";
          /** @description Requested claims that are missing, verified or not */
          missing: (string | number | null)[][];
          /** @description Checks in order, up to the failed one */
          report: components["schemas"]["Check"][];
        }[];
      }[];
      /** @description Missing parts of the presentation request: ids of credential queries, or credential_sets with their position */
      missing: string[];
      /** @description Skipped checks: they require a request and the wallet that answers it */
      untried: string[];
    };
    /** @description One check of a presentation */
    Check: {
      /** @description Id of the credential query; absent for the response as a whole */
      id?: string;
      /** @description Index of the presentation of the query */
      index?: number;
      check: string;
      /** @enum {string} */
      result: "passed" | "failed";
      /** @description Checked names, numbers and addresses */
      input?: string;
      /** @description Reason of the failure, see docs/reference/errors.md; for the whole response, in words */
      reason?: string;
      detail?: string;
      /** @description Source of the requirement */
      section: string;
    };
    Revoked: {
      sessionId: string;
      status: number;
      changed: number;
    };
    /** @description Place of the status of one credential */
    CredentialStatus: {
      statusListId: string;
      /** @description Address of the list in the credential */
      uri: string;
      /** @description `idx` of the credential */
      index: number;
      /** @description Bits per entry of the list: 1 for valid and revoked, 2 or more also for suspended */
      bits: 1 | 2 | 4 | 8;
      /** @description 0 valid, 1 revoked, 2 suspended, as stored; verifiers see it when the list is signed again */
      status: number;
      credentialConfigurationId: string;
      /** Format: date-time */
      issuedAt: string;
    };
    RevokedBySubject: {
      /** @description Revoked credentials, without those of deleted lists */
      revoked: number;
      /** @description Sessions whose credentials the job revokes */
      pending: number;
    };
    /** @description Outcomes of the most recent sessions */
    SessionRates: {
      /** Format: date-time */
      since: string;
      /** Format: date-time */
      until: string;
      /** @description Number of sessions in `outcomes`: those among the newest 20000 of the tenant */
      counted: {
        sessions: number;
        /** @description True for all sessions of the period; otherwise only the most recent ones are counted */
        isComplete: boolean;
        /**
         * Format: date-time
         * @description Creation time of the oldest of them
         */
        from?: string;
      };
      outcomes: {
        /** @enum {string} */
        kind: "issuance" | "verification";
        /** @enum {string} */
        status: "active" | "fetched" | "completed" | "expired" | "failed";
        count: number;
      }[];
      /** @description Number of sessions in `failures`: at most the newest 1,000 failed ones */
      failed: {
        sessions: number;
        /** @description True for all sessions of the period; otherwise only the most recent ones are counted */
        isComplete: boolean;
        /**
         * Format: date-time
         * @description Creation time of the oldest of them
         */
        from?: string;
      };
      /** @description The five most frequent causes, the most frequent first */
      failures: {
        /** @enum {string} */
        code: "code_replayed" | "refresh_token_replayed" | "tx_code_attempts" | "claims_unavailable" | "deferred_failed" | "decryption_failed" | "malformed" | "presentation_refused" | "response_code_missing" | "response_mode" | "webhook_failed" | "cancelled" | "internal_error" | "access_denied" | "invalid_client" | "invalid_request" | "invalid_request_uri_method" | "invalid_scope" | "invalid_transaction_data" | "server_error" | "temporarily_unavailable" | "unauthorized_client" | "unsupported_response_type" | "vp_formats_not_supported" | "wallet_unavailable" | "wallet_error";
        /** @description Reason of the first failed check of a rejected presentation */
        reason?: string;
        count: number;
      }[];
      /** @description Number of sessions in `refusals` and `deliveries`: at most the newest 2,000 with a record */
      lookedAt: {
        sessions: number;
        /** @description True for all sessions of the period; otherwise only the most recent ones are counted */
        isComplete: boolean;
        /**
         * Format: date-time
         * @description Creation time of the oldest of them
         */
        from?: string;
      };
      /** @description The five most frequent rejections of credential requests */
      refusals: {
        /** @description Errors that were returned to wallets */
        code: string;
        count: number;
      }[];
      deliveries: {
        /** @enum {string} */
        webhook: "claims" | "presentation" | "notification";
        delivered: number;
        pending: number;
        failed: number;
      }[];
    };
    /** @description One offer or presentation request, from its creation to its end */
    Session: {
      id: string;
      status: components["schemas"]["SessionState"];
      /** @enum {string} */
      kind: "issuance" | "verification";
      /** Format: date-time */
      createdAt: string;
      /** Format: date-time */
      updatedAt: string;
      /** Format: date-time */
      expiresAt: string;
      useDcApi: boolean;
      tenantId: string;
      tenant: components["schemas"]["TenantReference"];
      configurationIds: string[];
      /**
       * Format: date-time
       * @description Time at which the user authorized the wallet whose code was redeemed last
       */
      authorizedAt?: string;
      /**
       * Format: date-time
       * @description Time of the first token of the wallet
       */
      tokenAt?: string;
      /**
       * @description Client authentication of that wallet: by a wallet attestation, by a registered key, or none. All three are returned for a single session with an authorization server of this service, and are removed by anonymization
       * @enum {string}
       */
      walletAuthentication?: "attestation" | "key" | "none";
      /** @description Reference of the caller */
      reference?: string;
      /** @description Code of the last wallet at an authorization server of this service; shown once it is consumed */
      authorization_code?: string;
      request_uri?: string;
      /** @description The parameters of its authorization request, from its code to the end of its last token. Both are returned for a single session, not in lists, and are removed by anonymization */
      auth_queries?: {
        [key: string]: unknown;
      };
      offer?: {
        [key: string]: unknown;
      };
      offerUrl?: string;
      /** @description The request that created the session */
      credentialPayload?: {
        [key: string]: unknown;
      };
      notifyWebhook?: components["schemas"]["MaskedWebhook"];
      notifications: components["schemas"]["Notification"][];
      /** @description Credentials that were revoked because the wallet provider revoked the wallet or its key storage */
      revokedWithWallet?: {
        /** @description The `notification_id` with which they were issued */
        id: string;
        credentialConfigurationId: string;
        /** Format: date-time */
        at: string;
      }[];
      requestId?: string;
      requestUrl?: string;
      /** @description Signed request object, compact; absent when unsigned */
      requestObject?: string;
      /** @description Request of a page for an mdoc by the protocol of ISO/IEC TS 18013-7 Annex C: CBOR, base64url. It contains element names and no values */
      isoMdocRequest?: {
        deviceRequest: string;
        encryptionInfo: string;
      };
      /** @description Verified claims */
      credentials?: components["schemas"]["PresentedCredentialOutput"][];
      vp_nonce?: string;
      clientId?: string;
      responseUri?: string;
      redirectUri: string | null;
      parsedWebhook?: components["schemas"]["MaskedWebhook"];
      transaction_data?: {
        [key: string]: unknown;
      }[];
      failure?: components["schemas"]["SessionFailure"];
      /** @description Rejected token and credential requests of wallets in this session, and responses to a presentation request that could not be read, decrypted or parsed and left the session open: the first 20. Token requests are included if their code or refresh token is valid */
      attempts?: components["schemas"]["RefusedAttempt"][];
      /** @description The checks of each presentation, in order */
      report?: components["schemas"]["Check"][];
      /** @description Webhook calls and their results */
      deliveries?: components["schemas"]["Delivery"][];
      /** @description The external authorization server of the user */
      externalIssuer?: string;
      /** @description `sub` of its access token */
      externalSubject?: string;
    };
    /**
     * @description State of a session
     * @enum {string}
     */
    SessionState: "active" | "fetched" | "completed" | "expired" | "failed";
    /** @description A webhook; its key is never shown */
    MaskedWebhook: {
      url: string;
      auth?: {
        /** @constant */
        type: "apiKey";
        config: {
          headerName: string;
          value: string;
        };
      };
    };
    /** @description Notification of a wallet about its credentials */
    Notification: {
      /** @description The `notification_id`, one for all credentials of one response */
      id: string;
      /** @enum {string} */
      event: "credential_accepted" | "credential_failure" | "credential_deleted";
      credentialConfigurationId: string;
      /** @description Text of the wallet */
      eventDescription?: string;
      /** Format: date-time */
      at: string;
    };
    /** @description Reason of a failed session */
    SessionFailure: {
      /**
       * @description See docs/reference/errors.md
       * @enum {string}
       */
      code: "code_replayed" | "refresh_token_replayed" | "tx_code_attempts" | "claims_unavailable" | "deferred_failed" | "decryption_failed" | "malformed" | "presentation_refused" | "response_code_missing" | "response_mode" | "webhook_failed" | "cancelled" | "internal_error" | "access_denied" | "invalid_client" | "invalid_request" | "invalid_request_uri_method" | "invalid_scope" | "invalid_transaction_data" | "server_error" | "temporarily_unavailable" | "unauthorized_client" | "unsupported_response_type" | "vp_formats_not_supported" | "wallet_unavailable" | "wallet_error";
      /** @description For the operator */
      message: string;
    };
    /** @description A request for a credential, or a response to a presentation request, that was rejected */
    RefusedAttempt: {
      /** Format: date-time */
      at: string;
      /** @description Error that was sent to the wallet */
      code: string;
      /** @description For the operator */
      reason: string;
      /** @description Request id in the log */
      requestId?: string;
    };
    /** @description One delivery to a webhook and its result */
    Delivery: {
      /** @description The `Idempotency-Key` of its calls */
      id: string;
      /** @enum {string} */
      webhook: "claims" | "presentation" | "notification";
      /** Format: date-time */
      at: string;
      /** @enum {string} */
      result: "pending" | "delivered" | "failed";
      /** @description Reason of the failure */
      detail?: string;
      /** @description HTTP status of the response, if there was one */
      status?: number;
      /** @description Duration of the call */
      durationMs?: number;
    };
    /** @description The data of one event of the stream */
    SessionStatus: {
      id: string;
      status: components["schemas"]["SessionState"];
      /** Format: date-time */
      updatedAt: string;
    };
    /** @description Settings of new sessions of the tenant */
    EffectiveSessionStorageConfig: {
      ttlSeconds: number;
      /** @enum {string} */
      cleanupMode: "full" | "anonymize";
    };
    /** @description Settings of new sessions of the tenant */
    WrittenEffectiveSessionStorageConfig: {
      ttlSeconds: number;
      /** @enum {string} */
      cleanupMode: "full" | "anonymize";
      /** @description Rules of wallets, verifiers or laws that the stored object violates */
      warnings: components["schemas"]["Warning"][];
    };
    /** @description A client. Its secret is stored hashed and never shown here. */
    WrittenClient: {
      clientId: string;
      roles: components["schemas"]["Role"][];
      description: string | null;
      tenantId: string | null;
      tenant: components["schemas"]["TenantReference"] | null;
      /** @description Ids of the configurations that the client may use; empty or null means all */
      allowedPresentationConfigs: string[] | null;
      /** @description Ids of the configurations that the client may use; empty or null means all */
      allowedIssuanceConfigs: string[] | null;
      /** Format: date-time */
      createdAt: string;
      /** Format: date-time */
      updatedAt: string;
      /** @description Rules of wallets, verifiers or laws that the stored object violates */
      warnings: components["schemas"]["Warning"][];
    };
    /** @description Shown once. Save it now. */
    ClientSecret: {
      secret: string;
    };
    /** @description A key with its certificates */
    WrittenKeyChain: {
      id: string;
      tenantId: string;
      description: string | null;
      /** @description The first of `usages`; null for a key without any */
      usageType: ("access" | "signing" | "trustList" | "statusList") | null;
      usages: ("access" | "signing" | "trustList" | "statusList")[];
      /** @constant */
      usage: "sign";
      kmsProvider: string;
      /** @description The provider's own name of the key; null for local keys */
      externalKeyId: string | null;
      rootKey: components["schemas"]["PublicKey"] | null;
      /** @description PEM; the anchor that relying parties configure */
      rootCertificate: string | null;
      activeKey: components["schemas"]["PublicKey"];
      /** @description PEM, leaf first */
      activeCertificate: string;
      /** Format: date-time */
      activeCertificateExpiry: string;
      /** @description Since when the active key is compromised: it signs nothing until the key chain is rotated. Null for no compromise */
      compromisedAt?: string | null;
      rotationEnabled: boolean;
      rotationIntervalDays: number;
      certValidityDays: number;
      lastRotatedAt: string | null;
      previousKey: components["schemas"]["PublicKey"] | null;
      previousCertificate: string | null;
      /** @description Time at which everything that it signed has expired; it is published until then */
      previousKeyExpiry: string | null;
      /** @description All valid former keys, newest first */
      previousKeys: {
        key: components["schemas"]["PublicKey"];
        /** @description PEM, leaf first */
        certificate: string;
        /** Format: date-time */
        expiry: string;
      }[];
      /** Format: date-time */
      createdAt: string;
      /** Format: date-time */
      updatedAt: string;
      /** @description Rules of wallets, verifiers or laws that the stored object violates */
      warnings: components["schemas"]["Warning"][];
    };
    /** @description Providers that can create keys */
    KeyProvider: {
      name: string;
      /** @description `local`, `vault` or `pkcs11` */
      type: string;
      /** @description Default for tenants without their own provider */
      default: boolean;
      /** @description Default provider of new keys of this tenant */
      own: boolean;
      /** @description Algorithms of the keys that it can create */
      algorithms: ("ES256" | "ES384" | "ES512" | "EdDSA")[];
      /**
       * @description True if the provider responds at present
       * @enum {string}
       */
      status: "up" | "down";
    };
    /** @description A key chain after its rotation */
    WrittenRotatedKeyChain: {
      id: string;
      tenantId: string;
      description: string | null;
      /** @description The first of `usages`; null for a key without any */
      usageType: ("access" | "signing" | "trustList" | "statusList") | null;
      usages: ("access" | "signing" | "trustList" | "statusList")[];
      /** @constant */
      usage: "sign";
      kmsProvider: string;
      /** @description The provider's own name of the key; null for local keys */
      externalKeyId: string | null;
      rootKey: components["schemas"]["PublicKey"] | null;
      /** @description PEM; the anchor that relying parties configure */
      rootCertificate: string | null;
      activeKey: components["schemas"]["PublicKey"];
      /** @description PEM, leaf first */
      activeCertificate: string;
      /** Format: date-time */
      activeCertificateExpiry: string;
      /** @description Since when the active key is compromised: it signs nothing until the key chain is rotated. Null for no compromise */
      compromisedAt?: string | null;
      rotationEnabled: boolean;
      rotationIntervalDays: number;
      certValidityDays: number;
      lastRotatedAt: string | null;
      previousKey: components["schemas"]["PublicKey"] | null;
      previousCertificate: string | null;
      /** @description Time at which everything that it signed has expired; it is published until then */
      previousKeyExpiry: string | null;
      /** @description All valid former keys, newest first */
      previousKeys: {
        key: components["schemas"]["PublicKey"];
        /** @description PEM, leaf first */
        certificate: string;
        /** Format: date-time */
        expiry: string;
      }[];
      /** Format: date-time */
      createdAt: string;
      /** Format: date-time */
      updatedAt: string;
      /** @description With `compromised`: all key chains of the tenant that have or had the public key; empty otherwise */
      affectedKeyChains: {
        id: string;
        /**
         * @description `rotated`: it signs with another key. `blocked`: it signs nothing until it is rotated or replaced. `former`: only a former key of it is affected
         * @enum {string}
         */
        outcome: "rotated" | "blocked" | "former";
        /** @description Reason why the key chain could not be rotated */
        reason: string | null;
      }[];
      /** @description Rules of wallets, verifiers or laws that the stored object violates */
      warnings: components["schemas"]["Warning"][];
    };
    /** @description Certificate signing request for the authority that certifies the key */
    CertificateRequest: {
      /** @description PKCS#10 (RFC 2986) as PEM */
      csr: string;
    };
    /** @description A certificate chain and its key */
    WrittenCertificate: {
      /** @description The id of the key chain */
      id: string;
      /** @description Id of the key: the id of its first key chain */
      keyId: string;
      tenantId: string;
      description: string | null;
      /** @description PEM, leaf first, the internal authority last */
      crt: string[];
      /** Format: date-time */
      createdAt: string;
      /** Format: date-time */
      updatedAt: string;
      usages: {
        tenantId: string;
        certId: string;
        /** @enum {string} */
        usage: "access" | "signing" | "trustList" | "statusList";
        cert: {
          /** @description The id of the key chain */
          id: string;
          /** @description Id of the key: the id of its first key chain */
          keyId: string;
          tenantId: string;
          description: string | null;
          /** @description PEM, leaf first, the internal authority last */
          crt: string[];
          /** Format: date-time */
          createdAt: string;
          /** Format: date-time */
          updatedAt: string;
        };
      }[];
      key: components["schemas"]["Key"];
      /** @description Rules of wallets, verifiers or laws that the stored object violates */
      warnings: components["schemas"]["Warning"][];
    };
    /** @description A key; its private part is never shown */
    WrittenKey: {
      /** @description The id of its first key chain */
      id: string;
      description: string | null;
      tenantId: string;
      key: components["schemas"]["PublicKey"];
      /** @constant */
      usage: "sign";
      kmsProvider: string;
      /** @description All certificates of this key */
      certificates: {
        id: string;
      }[];
      /** Format: date-time */
      createdAt: string;
      /** Format: date-time */
      updatedAt: string;
      /** @description Rules of wallets, verifiers or laws that the stored object violates */
      warnings: components["schemas"]["Warning"][];
    };
    /** @description A status list with its administrative properties */
    StatusList: {
      id: string;
      tenantId: string;
      /** @description Null: shared */
      credentialConfigurationId: string | null;
      /** @description Null: the default of the tenant signs */
      keyChainId: string | null;
      /** @description Former name of `keyChainId` */
      certId: string | null;
      bits: 1 | 2 | 4 | 8;
      capacity: number;
      /** @description Entries of credentials. Processes reserve entries in advance: those that another process has reserved and not yet allocated to a credential are counted as used */
      usedEntries: number;
      availableEntries: number;
      uri: string;
      /** @description Validity of a token of the list in seconds */
      ttl: number;
      immediateUpdate: boolean;
      enableAggregation: boolean;
      /** Format: date-time */
      createdAt: string;
      /** @description Expiry of the last token; null before the first */
      expiresAt: string | null;
    };
    /** @description A status list with its administrative properties */
    WrittenStatusList: {
      id: string;
      tenantId: string;
      /** @description Null: shared */
      credentialConfigurationId: string | null;
      /** @description Null: the default of the tenant signs */
      keyChainId: string | null;
      /** @description Former name of `keyChainId` */
      certId: string | null;
      bits: 1 | 2 | 4 | 8;
      capacity: number;
      /** @description Entries of credentials. Processes reserve entries in advance: those that another process has reserved and not yet allocated to a credential are counted as used */
      usedEntries: number;
      availableEntries: number;
      uri: string;
      /** @description Validity of a token of the list in seconds */
      ttl: number;
      immediateUpdate: boolean;
      enableAggregation: boolean;
      /** Format: date-time */
      createdAt: string;
      /** @description Expiry of the last token; null before the first */
      expiresAt: string | null;
      /** @description Rules of wallets, verifiers or laws that the stored object violates */
      warnings: components["schemas"]["Warning"][];
    };
    /** @description Settings of future status lists */
    EffectiveStatusListConfig: {
      capacity: number;
      bits: 1 | 2 | 4 | 8;
      ttl: number;
      immediateUpdate: boolean;
      enableAggregation: boolean;
    };
    /** @description Settings of future status lists */
    WrittenEffectiveStatusListConfig: {
      capacity: number;
      bits: 1 | 2 | 4 | 8;
      ttl: number;
      immediateUpdate: boolean;
      enableAggregation: boolean;
      /** @description Rules of wallets, verifiers or laws that the stored object violates */
      warnings: components["schemas"]["Warning"][];
    };
    TrustList: {
      id: string;
      description: string | null;
      tenantId: string;
      tenant: components["schemas"]["TenantReference"];
      /** @description The key chain that signed */
      keyChainId: string;
      /** @description Same value, under its former name */
      certId: string;
      /** @description Null: the signing key chain was deleted */
      cert: components["schemas"]["Certificate"] | null;
      data: components["schemas"]["TrustListDocument"];
      /** @description As they were written; key chains under both property names */
      entityConfig: ({
        /** @enum {string} */
        type: "internal" | "external";
        info: {
          name: string;
        } & {
          [key: string]: unknown;
        };
      } & {
        [key: string]: unknown;
      })[];
      /** @description Increases with every write and every signature */
      sequenceNumber: number;
      /** @description The signed list as it is published */
      jwt: string;
      /** Format: date-time */
      createdAt: string;
      /**
       * Format: date-time
       * @description Time of the last signature
       */
      updatedAt: string;
    };
    /** @description The document that is signed (ETSI TS 119 602) */
    TrustListDocument: {
      LoTE: {
        ListAndSchemeInformation: {
          LoTESequenceNumber: number;
        } & {
          [key: string]: unknown;
        };
      } & {
        [key: string]: unknown;
      };
    } & {
      [key: string]: unknown;
    };
    WrittenTrustList: {
      id: string;
      description: string | null;
      tenantId: string;
      tenant: components["schemas"]["TenantReference"];
      /** @description The key chain that signed */
      keyChainId: string;
      /** @description Same value, under its former name */
      certId: string;
      /** @description Null: the signing key chain was deleted */
      cert: components["schemas"]["Certificate"] | null;
      data: components["schemas"]["TrustListDocument"];
      /** @description As they were written; key chains under both property names */
      entityConfig: ({
        /** @enum {string} */
        type: "internal" | "external";
        info: {
          name: string;
        } & {
          [key: string]: unknown;
        };
      } & {
        [key: string]: unknown;
      })[];
      /** @description Increases with every write and every signature */
      sequenceNumber: number;
      /** @description The signed list as it is published */
      jwt: string;
      /** Format: date-time */
      createdAt: string;
      /**
       * Format: date-time
       * @description Time of the last signature
       */
      updatedAt: string;
      /** @description Rules of wallets, verifiers or laws that the stored object violates */
      warnings: components["schemas"]["Warning"][];
    };
    /** @description Body of POST and PUT that creates this list */
    TrustListExport: {
      id: string;
      keyChainId: string | null;
      certId: string | null;
      description?: string;
      /** @description As they were written; key chains under both property names */
      entities: ({
        /** @enum {string} */
        type: "internal" | "external";
        info: {
          name: string;
        } & {
          [key: string]: unknown;
        };
      } & {
        [key: string]: unknown;
      })[];
      data?: components["schemas"]["TrustListData"];
    };
    /** @description A previous version of a trust list */
    TrustListVersion: {
      id: string;
      trustListId: string;
      trustList: {
        id: string;
        description: string | null;
      };
      tenantId: string;
      sequenceNumber: number;
      data: components["schemas"]["TrustListDocument"];
      /** @description As they were written; key chains under both property names */
      entityConfig: ({
        /** @enum {string} */
        type: "internal" | "external";
        info: {
          name: string;
        } & {
          [key: string]: unknown;
        };
      } & {
        [key: string]: unknown;
      })[];
      jwt: string;
      /**
       * Format: date-time
       * @description Time of the signature
       */
      createdAt: string;
    };
    /** @description A trust list of another operator that the tenant relies on */
    FollowedTrustList: {
      id: string;
      /** @description Without its query */
      uri: string;
      /** @description The list of lists that points to it and defines its signer */
      via: string | null;
      /** @description Sequence number of the last valid version */
      sequenceNumber: number | null;
      /** @description End of the validity of that version */
      nextUpdate: string | null;
      /** @description Time of the last successful download; null if copies were removed since */
      checkedAt: string | null;
      /** Format: date-time */
      lookedAt: string;
      /** @description Problem of the downloaded version; the last valid version is used until it expires */
      held: {
        /** Format: date-time */
        since: string;
        reason: string;
        /** @description Signer of the fetched list, which is not trusted until an operator confirms it */
        signer: {
          /** @description PEM */
          certificate: string;
          fingerprint: string;
        } | null;
      } | null;
    };
    /** @description An object of the trust of a tenant that expires */
    TrustForecastItem: {
      /** @enum {string} */
      kind: "key-chain" | "authority" | "anchor" | "list-signer" | "followed-list" | "published-list" | "registration-certificate";
      /** @description Id of the key chain or the list, or fingerprint (SHA-256, base64url) of a certificate */
      id: string;
      name: string;
      /** Format: date-time */
      endsAt: string;
      /** @description The service renews it without an operator */
      renews: boolean;
      affects: {
        /** @description Credential configurations that cannot be issued then */
        issuance: string[];
        /** @description Presentation configurations that fail then, or trust fewer issuers */
        presentation: string[];
      };
      /** @description Action of the operator before that date */
      advice: string;
    };
    /** @description The login of the tenant at its registrar, without secrets */
    RegistrarConfiguration: {
      /** @description Base of the API of the registrar, without query and fragment */
      registrarUrl: string;
      /** @description OpenID provider of the registrar, found by OpenID Connect Discovery */
      oidcUrl: string;
      /** @description Client of the service at the OpenID provider */
      clientId: string;
      hasClientSecret: boolean;
      /** @description Account at the registrar */
      username: string;
      hasPassword: boolean;
      registrationCertificateAnchors?: string[] | null;
      registrationCertificateDefaults?: {
        /** @description Address of the policy for users */
        privacy_policy?: string;
        support_uri?: string;
        /** @description Purpose of the request, by language */
        purpose?: {
          lang: string;
          content: string;
        }[];
        /** @description Intermediary of the relying party, by its name at the registrar */
        intermediary?: string | {
          sub: string;
          sname?: string;
        };
      } | null;
      tenantId: string;
      tenant: components["schemas"]["TenantReference"];
      /** Format: date-time */
      createdAt: string;
      /** Format: date-time */
      updatedAt: string;
    };
    /** @description The login of the tenant at its registrar, without secrets */
    WrittenRegistrarConfiguration: {
      /** @description Base of the API of the registrar, without query and fragment */
      registrarUrl: string;
      /** @description OpenID provider of the registrar, found by OpenID Connect Discovery */
      oidcUrl: string;
      /** @description Client of the service at the OpenID provider */
      clientId: string;
      hasClientSecret: boolean;
      /** @description Account at the registrar */
      username: string;
      hasPassword: boolean;
      registrationCertificateAnchors?: string[] | null;
      registrationCertificateDefaults?: {
        /** @description Address of the policy for users */
        privacy_policy?: string;
        support_uri?: string;
        /** @description Purpose of the request, by language */
        purpose?: {
          lang: string;
          content: string;
        }[];
        /** @description Intermediary of the relying party, by its name at the registrar */
        intermediary?: string | {
          sub: string;
          sname?: string;
        };
      } | null;
      tenantId: string;
      tenant: components["schemas"]["TenantReference"];
      /** Format: date-time */
      createdAt: string;
      /** Format: date-time */
      updatedAt: string;
      /** @description Rules of wallets, verifiers or laws that the stored object violates */
      warnings: components["schemas"]["Warning"][];
    };
    /** @description Signs requests to wallets from now on */
    AccessCertificate: {
      /** @description Id of the certificate at the registrar */
      id: string;
      relyingPartyId: string;
      keyChainId: string;
      /** @description Same value, under its former name */
      certId: string;
      /** @description PEM, leaf first */
      crt: string[];
      /** Format: date-time */
      expiresAt: string;
      keyChain: components["schemas"]["KeyChain"];
    };
    /** @description A registration certificate (ETSI TS 119 475) */
    RegistrationCertificate: {
      /** @description Id at the registrar; null for a certificate that was provided */
      id: string | null;
      jwt: string;
      relyingPartyId: string | null;
      /** @description Identifier of the relying party, as in its access certificate */
      subject: string;
      intendedUseId: string | null;
      /** @description Attestations and claims that may be requested */
      credentials: {
        format: string;
        meta: {
          [key: string]: unknown;
        };
        claims?: {
          path: unknown[];
          values?: unknown[];
        }[];
      }[];
      /** Format: date-time */
      issuedAt: string;
      expiresAt: string | null;
    };
    /** @description Secrets that sign calls to backends. Secrets are never shown. */
    WebhookSecret: {
      /**
       * @description `v1`: calls are signed (Standard Webhooks); `off`: they are not signed
       * @enum {string}
       */
      signing: "v1" | "off";
      /** @description Time of creation of the present secret; null if none was returned yet, so that no backend can verify signatures */
      createdAt: string | null;
      /** @description Former secrets that still sign, the newest first; at most 3 */
      former: {
        /** Format: date-time */
        createdAt: string;
        /**
         * Format: date-time
         * @description Until then calls are also signed with it
         */
        signsUntil: string;
      }[];
    };
    /** @description Secrets that sign calls to backends. Secrets are never shown. */
    WrittenWebhookSecret: {
      /**
       * @description `v1`: calls are signed (Standard Webhooks); `off`: they are not signed
       * @enum {string}
       */
      signing: "v1" | "off";
      /** @description Time of creation of the present secret; null if none was returned yet, so that no backend can verify signatures */
      createdAt: string | null;
      /** @description Former secrets that still sign, the newest first; at most 3 */
      former: {
        /** Format: date-time */
        createdAt: string;
        /**
         * Format: date-time
         * @description Until then calls are also signed with it
         */
        signsUntil: string;
      }[];
      /** @description Rules of wallets, verifiers or laws that the stored object violates */
      warnings: components["schemas"]["Warning"][];
    };
    /** @description A new secret, which signs from now on */
    CreatedWebhookSecret: {
      /**
       * @description `v1`: calls are signed (Standard Webhooks); `off`: they are not signed
       * @enum {string}
       */
      signing: "v1" | "off";
      /** @description Time of creation of the present secret; null if none was returned yet, so that no backend can verify signatures */
      createdAt: string | null;
      /** @description Former secrets that still sign, the newest first; at most 3 */
      former: {
        /** Format: date-time */
        createdAt: string;
        /**
         * Format: date-time
         * @description Until then calls are also signed with it
         */
        signsUntil: string;
      }[];
      /** @description `whsec_` and base64. Shown once. Save it now. */
      secret: string;
    };
    CacheStats: {
      trustListCache: {
        /** @description Cached lists */
        size: number;
        /** @description Checks that used a cached list, since the start of the process */
        hits: number;
        /** @description Checks that fetched a list */
        misses: number;
        entries: {
          uri: string;
          /** Format: date-time */
          fetchedAt: string;
          /** Format: date-time */
          expiresAt: string;
        }[];
        /** @description Lists whose last fetch failed; older copies of them may be in use */
        failing: {
          uri: string;
          /** @description Reason why it could not be fetched or was rejected */
          reason: string;
          /** Format: date-time */
          failedAt: string;
          /**
           * Format: date-time
           * @description From then on the next check fetches it
           */
          retriedAt: string;
        }[];
      };
      statusListCache: {
        /** @description Cached lists */
        size: number;
        /** @description Checks that used a cached list, since the start of the process */
        hits: number;
        /** @description Checks that fetched a list */
        misses: number;
        entries: {
          uri: string;
          /** Format: date-time */
          fetchedAt: string;
          /** Format: date-time */
          expiresAt: string;
        }[];
        /** @description Lists whose last fetch failed; older copies of them may be in use */
        failing: {
          uri: string;
          /** @description Reason why it could not be fetched or was rejected */
          reason: string;
          /** Format: date-time */
          failedAt: string;
          /**
           * Format: date-time
           * @description From then on the next check fetches it
           */
          retriedAt: string;
        }[];
      };
      /** @description Revocation lists of issuers of certificates */
      revocationListCache: {
        /** @description Cached lists */
        size: number;
        /** @description Checks that used a cached list, since the start of the process */
        hits: number;
        /** @description Checks that fetched a list */
        misses: number;
        entries: {
          uri: string;
          /** Format: date-time */
          fetchedAt: string;
          /** Format: date-time */
          expiresAt: string;
        }[];
        /** @description Lists whose last fetch failed; older copies of them may be in use */
        failing: {
          uri: string;
          /** @description Reason why it could not be fetched or was rejected */
          reason: string;
          /** Format: date-time */
          failedAt: string;
          /**
           * Format: date-time
           * @description From then on the next check fetches it
           */
          retriedAt: string;
        }[];
      };
      /** @description Followed status lists of wallet providers, in all processes; failing lists first */
      followedStatusLists: {
        uri: string;
        /** @description Time of the last comparison with credentials */
        checkedAt: string | null;
        /** @description Reason why it cannot be fetched at present; until then nothing is revoked */
        failure: {
          /** Format: date-time */
          since: string;
          /** @description Attempts since then */
          count: number;
          reason: string;
        } | null;
      }[];
    };
    /** @description Actors, changes and times */
    AuditEntry: {
      /** @description From 1, without gaps */
      sequence: number;
      /** Format: date-time */
      at: string;
      /** @description Client id, or `system` for the service itself. With an external OpenID provider the user follows in parentheses, by the claim of `OIDC_ACTOR_CLAIM`: `console (3f9c…)`; a name that is too long or has control characters is shown as `sha256:…` */
      actor: string;
      /** @enum {string} */
      action: "created" | "changed" | "removed" | "rotated" | "requested" | "renewed" | "fetched" | "expired" | "revoked" | "suspended" | "restored" | "cancelled" | "retried" | "shown" | "completed" | "failed" | "held" | "confirmed" | "cleared" | "begun" | "fenced" | "pruned" | "broken";
      /** @enum {string} */
      kind: "tenant" | "client" | "key-chain" | "issuance-configuration" | "credential-configuration" | "presentation-configuration" | "registrar-configuration" | "registration-certificate" | "status-list" | "trust-list" | "webhook-secret" | "session" | "deferred-transaction" | "wallet-status-list" | "followed-trust-list" | "cache" | "audit-log";
      /** @description Id of the changed object */
      target: string;
      /** @description Properties that changed; values only of properties without secrets and personal data */
      changes: {
        member: string;
        before?: unknown;
        after?: unknown;
      }[];
      /** @description `X-Request-Id` of the call */
      requestId?: string;
      /** @description In the log of the service: the entry of the log of the tenant that this one repeats */
      of?: {
        tenantId: string;
        sequence: number;
        hash: string;
      };
      /** @description MAC of the entry, its position and the previous hash, under a key of `MASTER_SECRET` */
      hash: string;
    };
    /** @description Result of verifying the chain of the audit log */
    AuditVerification: {
      /**
       * @description `unfinished`: intact so far; continue with `next`
       * @enum {string}
       */
      status: "whole" | "broken" | "unfinished";
      /** @description Number of the entry up to which the log is intact */
      verified: number;
      /** @description Number of the newest entry */
      length: number;
      fault?: {
        /** @description The first entry that is wrong or missing */
        sequence: number;
        /** @enum {string} */
        kind: "altered" | "reordered" | "removed" | "truncated" | "head_altered" | "head_outdated" | "unknown_key" | "noted" | "unexpected";
        message: string;
      };
      /** @description Observations that an operator has to judge */
      warning?: string;
      /** @description `cursor` of the next call */
      next?: string;
    };
    Service: {
      name: string;
      /** @description Release number */
      version: string;
      /** @description Git commit that was built; null if it is unknown */
      commit: string | null;
      documentation: string;
      /** @description Credential Issuer Identifier of a tenant */
      issuerUrlTemplate: string;
    };
    Health: {
      /** @description Release number */
      version: string;
      /** @description Git commit that was built; null if it is unknown */
      commit: string | null;
      /**
       * @description `degraded`: works, except for requests that depend on a failed component
       * @enum {string}
       */
      status: "ok" | "degraded" | "error";
      /** @description What works */
      info: {
        [key: string]: {
          /** @enum {string} */
          status: "up" | "down";
        };
      } | null;
      /** @description Failed components */
      error: {
        [key: string]: {
          /** @enum {string} */
          status: "up" | "down";
        };
      } | null;
      /** @description Both */
      details: {
        [key: string]: {
          /** @enum {string} */
          status: "up" | "down";
        };
      };
    };
    Liveness: {
      /** @constant */
      status: "ok";
    };
    /** @description One setting of the service, with where its value comes from */
    Setting: {
      /** @description Name of the environment variable */
      name: string;
      /** @description Configured value, without user, password and parameters of an address; null for a secret, and without a value */
      value: string | null;
      /** @description True if it was configured, or set by the first start */
      isSet: boolean;
      /** @description The value is never shown */
      isSecret: boolean;
      /**
       * @description `file`: `secrets.env` of the first start, or `kms.json`, both in DATA_FOLDER; `default`: not configured
       * @enum {string}
       */
      source: "environment" | "file" | "default";
      description: string;
    };
    ClaimsAnswer: {
      [key: string]: {
        [key: string]: unknown;
      };
    } | ({
      /** @constant */
      deferred: true;
      /** @description Seconds that the wallet waits between two polls. Default: 5 */
      interval?: number | null;
    } & {
      [key: string]: unknown;
    });
    PresentationAnswer: {
      /** @description Redirect address instead of the configured one; ignored if it is not an address */
      redirectUri?: string | null;
    } & {
      [key: string]: unknown;
    };
    DisplayInfoOutput: {
      /** @description Name of the issuer as wallets show it */
      name: string;
      /** @description BCP 47, such as en or de-AT; each language at most once */
      locale?: string;
      /** @description Logo of the issuer */
      logo?: {
        /** @description https or data URL of an image */
        uri: string;
        /** @description Text alternative for screen readers */
        alt_text?: string;
      };
    };
    WalletClientOutput: {
      /** @description Name of the wallet; `iss` and `sub` of its assertions. Requests with this name require an assertion */
      client_id: string;
      /** @description Its public keys: ES256, ES384, ES512 or EdDSA */
      jwks?: Record<string, never>;
      /** @description URL of its key set, instead of `jwks` */
      jwks_uri?: string;
      /** @description The only `redirect_uri` values that it may use, compared exactly. Default: any, and the user is shown the target of the redirect */
      redirect_uris?: string[];
    } & (unknown | unknown);
    WalletProviderOutput: {
      /** @description Certificates of the provider, one PEM each: the one on the trust list, or the one that signs its attestations */
      certificates: string[];
      /** @description Names of its wallets, `sub` of their attestations. An attestation of another provider with such a name is rejected */
      client_ids: string[];
      /** @description Redirect addresses of these wallets, compared exactly. The chained server redirects a browser to one of these without consent; for every other address the user is shown the target. The page of the built-in server always asks */
      redirect_uris?: string[];
    };
    ChainedAsConfigOutput: {
      /** @description false: its addresses return 404 and its tokens are rejected */
      enabled: boolean;
      /** @description the OpenID provider where users log in; register {PUBLIC_URL}/{tenant}/chained-as/callback there. The claims of its ID token, of its userinfo endpoint, and of its access token where that is a JWT of its own, reach the claims webhook as `identity.token_claims` */
      upstream: {
        /** @description found by OpenID Connect Discovery */
        issuer: string;
        /** @description client of this service at the provider */
        clientId: string;
        /** @description absent for a public client; PKCE is always used */
        clientSecret?: string;
        scopes: string[];
        /** @description false: its userinfo endpoint is not called. Default: it is called if it exists, and a login fails if it returns no claims of the same user, for example because access tokens are for another API */
        userinfo?: boolean;
      };
      token: {
        /** @description of access tokens; tokens without key binding are valid for at most 300 seconds */
        lifetimeSeconds: number;
        /** @description key chain that signs access tokens. Default: that of the tenant */
        signingKeyId?: string | null;
      };
      /** @description false: access tokens without key binding are issued, too */
      requireDPoP: boolean;
      /** @description asks users for consent after their login before a redirect to an address that is not registered for a wallet that authenticated (`walletClients`, `walletProviders`). If it is disabled, an attacker who sends a link to a user with a session at the upstream provider gets the credentials of that user without consent */
      confirmUnverifiedWallets: boolean;
    };
    RegistrationCertificateRequestOutput: {
      /** @description A certificate of another source */
      jwt?: string;
      /** @description A certificate that the registrar has issued */
      id?: string;
      /** @description A certificate to be issued, in a configuration with the role `registrar:manage`. `credentials` is derived from the query by default; `privacy_policy`, `support_uri` and `purpose` default to those of the registrar configuration, `purpose` primarily to `purpose` of the configuration */
      body?: {
        /** @description Address of the policy for users */
        privacy_policy?: string;
        support_uri?: string;
        /** @description Intermediary of the relying party, by its name at the registrar */
        intermediary?: string | {
          sub: string;
          sname?: string;
        };
        /** @description Purpose of the request, by language */
        purpose?: {
          lang: string;
          content: string;
        }[];
        credentials?: {
          format: string;
          meta: Record<string, never>;
          claims?: {
            path: (string | null | number)[];
          }[];
        }[];
        provided_attestations?: {
          format: string;
          meta: Record<string, never>;
        }[];
      };
    } & (unknown | unknown | unknown);
    CredentialConfigOutput: {
      /**
       * @description SD-JWT VC or ISO mdoc
       * @enum {string}
       */
      format: "dc+sd-jwt" | "mso_mdoc";
      /** @description Display in wallets, by language; most wallets show the id of the configuration without one */
      display?: {
        /** @description Name of the credential as wallets show it */
        name: string;
        /** @description BCP 47, such as en or de-AT; each language at most once */
        locale?: string;
        /** @description For the user */
        description?: string;
        /** @description Such as #12355b */
        background_color?: string;
        /** @description Such as #ffffff */
        text_color?: string;
        /** @description Background colour of the card */
        background_image?: {
          /** @description https or data URL of an image */
          uri: string;
        };
        /** @description Text colour of the card */
        logo?: {
          /** @description https or data URL of an image */
          uri: string;
          /** @description Text alternative for screen readers */
          alt_text?: string;
        };
      }[];
      /** @description Value of `scope` in requests of wallets. Default: the id of the configuration. Configurations of one type may share it */
      scope?: string;
      /** @description claims in the metadata for wallets; mso_mdoc: paths begin with namespace and element */
      claims?: {
        /** @description Property names, positions, or null for all entries of an array; such as `["address", "street"]`. In an mdoc, an element after the element name may also be a negative integer, which is a key of a map */
        path: (string | number | null)[];
        /** @description Every credential contains it; credentials without it are not issued */
        mandatory?: boolean;
        /** @description Name in wallets, by language */
        display?: {
          /** @description Label of the claim */
          name: string;
          /** @description BCP 47, such as en or de-AT; each language at most once */
          locale?: string;
        }[];
      }[];
      /** @description mso_mdoc: the document type */
      docType?: string;
      /** @description mso_mdoc: the namespace of claims without one */
      namespace?: string;
      /** @description mso_mdoc: static elements of documents without other claims, by namespace */
      claimsByNamespace?: {
        [key: string]: {
          [key: string]: components["schemas"]["Json"];
        };
      };
      /** @description Optional. dc+sd-jwt: `jwk`, mso_mdoc: `cose_key`, none without keyBinding; any other value is rejected */
      cryptographic_binding_methods_supported?: string[];
      /** @description Optional. The algorithm of the signing key, such as `ES256`, for mso_mdoc also as COSE number; any other value is rejected */
      credential_signing_alg_values_supported?: (string | number)[];
    } & unknown;
    TypeMetadataOutput: {
      /** @description The type. Default: a type that the service hosts, `<PUBLIC_URL>/<tenant>/vct/<id>` */
      vct?: string;
      /** @description For developers. Default: the first display name */
      name?: string;
      /** @description For developers. Default: that of the configuration */
      description?: string;
      /** @description The type that this one extends */
      extends?: string;
      /** @description Hash of its document, such as sha256-… */
      "extends#integrity"?: string;
      /** @description A JSON Schema for verifiers; not applied by the service */
      schema_uri?: string;
      /** @description Its hash, such as sha256-… */
      "schema_uri#integrity"?: string;
      /** @description SD-JWT VC section 5.5. Default: derived from `config.display` */
      display?: (({
        /** @description BCP 47, such as en or de-AT; each language at most once */
        locale?: string;
        /** @description BCP 47, such as en or de-AT; each language at most once */
        lang?: string;
        /** @description Of the type, for users */
        name: string;
        description?: string;
        rendering?: {
          simple?: {
            logo?: {
              /** @description http or https address, or a data URL of an image */
              uri: string;
              "uri#integrity"?: string;
              alt_text?: string;
            } & {
              [key: string]: unknown;
            };
            background_image?: {
              /** @description http or https address, or a data URL of an image */
              uri: string;
              "uri#integrity"?: string;
              alt_text?: string;
            } & {
              [key: string]: unknown;
            };
            background_color?: string;
            text_color?: string;
          } & {
            [key: string]: unknown;
          };
          svg_templates?: ({
            uri: string;
            "uri#integrity"?: string;
            properties?: {
              /** @enum {string} */
              orientation?: "portrait" | "landscape";
              /** @enum {string} */
              color_scheme?: "light" | "dark";
              /** @enum {string} */
              contrast?: "normal" | "high";
            } & {
              [key: string]: unknown;
            };
          } & {
            [key: string]: unknown;
          })[];
        } & {
          [key: string]: unknown;
        };
      } & {
        [key: string]: unknown;
      }) & (unknown | unknown))[];
      /** @description SD-JWT VC section 5.6. Default: derived from `config.claims` and the frame */
      claims?: ({
        /** @description Property names, positions, or null for all entries of an array */
        path: (string | number | null)[];
        display?: (({
          /** @description BCP 47, such as en or de-AT; each language at most once */
          locale?: string;
          /** @description BCP 47, such as en or de-AT; each language at most once */
          lang?: string;
          /** @description Of the claim, for users */
          label: string;
          description?: string;
        } & {
          [key: string]: unknown;
        }) & (unknown | unknown))[];
        /** @description Required in every credential */
        mandatory?: boolean;
        /**
         * @description Selective disclosure of the claim; the frame of the configuration must match
         * @enum {string}
         */
        sd?: "always" | "allowed" | "never";
        svg_id?: string;
      } & {
        [key: string]: unknown;
      })[];
    } & {
      [key: string]: unknown;
    };
    InteractiveActionOutput: {
      /**
       * @description The wallet presents credentials first
       * @constant
       */
      type: "openid4vp_presentation";
      /** @description Label for the administrator; not visible to wallets */
      label?: string;
      /** @description Id of a presentation configuration. The verified claims are sent to its `webhook`, and to the claims webhook as `credentials` */
      presentationConfigId: string;
    } | {
      /**
       * @description The user visits your page first
       * @constant
       */
      type: "redirect_to_web";
      /** @description Label for the administrator; not visible to wallets */
      label?: string;
      /** @description The page that the user visits. {auth_session} is replaced by the id of this visit. The query parameter return_to is appended: the address to which the page redirects the browser at the end, with &error=access_denied if the user cancelled. */
      url: string;
      /** @description Called with POST of {session, auth_session} to confirm that the user of this visit has completed the page, before anything is issued. Any 2xx with JSON or without a body confirms it; otherwise the wallet is denied. Without it the return of the browser is trusted, which every user can forge, so the page is then only informative. */
      callbackUrl?: string;
      /** @description For the administrator */
      description?: string;
    };
    DisclosurePolicyOutput: {
      /**
       * @description To anybody
       * @constant
       */
      policy: "none";
    } | {
      /**
       * @description Allows the named relying parties
       * @constant
       */
      policy: "allowList";
      /** @description Relying parties, by their names in access certificates; at least one */
      values: string[];
    } | {
      /**
       * @description Allows relying parties with a certificate of one of these authorities
       * @constant
       */
      policy: "rootOfTrust";
      /** @description Names of the authorities, at least one */
      values: string | string[];
    } | {
      /**
       * @description Allows relying parties that present an attestation
       * @constant
       */
      policy: "attestationBased";
      /** @description Alternatives; one is enough */
      values: components["schemas"]["AttestationOfRelyingPartyOutput"][];
    };
    AttestationOfRelyingPartyOutput: {
      /** @description DCQL claims queries */
      claims?: components["schemas"]["DcqlObjectOutput"][];
      /** @description DCQL credential queries for the credentials of the relying party */
      credentials: components["schemas"]["DcqlObjectOutput"][];
      /** @description DCQL credential sets over these */
      credential_sets?: components["schemas"]["DcqlObjectOutput"][];
    };
    DcqlObjectOutput: {
      [key: string]: components["schemas"]["Json"];
    };
    TransactionDataOutput: {
      type: string;
      credential_ids: string[];
      transaction_data_hashes_alg?: ("sha-256" | "sha-384" | "sha-512")[];
    } & {
      [key: string]: unknown;
    };
    /** @description Result of one credential query */
    PresentedCredentialOutput: {
      /** @description Id of the credential query */
      id: string;
      /** @description Verified claims; an array for a query with `multiple` */
      values?: {
        [key: string]: unknown;
      } | {
        [key: string]: unknown;
      }[];
      /** @description Signer; an array for an array of `values` */
      issuer?: components["schemas"]["PresentedIssuerOutput"] | components["schemas"]["PresentedIssuerOutput"][];
      /** @description User authentication by the wallet, beside a confirmed transaction of TS12 (docs/reference/verifying.md) */
      authentication?: {
        /** @description The authentication code */
        jti: string;
        /** @description Factors by category */
        amr: {
          [key: string]: string;
        }[];
      };
      /**
       * @description Reason for absent `values`, see docs/reference/errors.md. `missing`: no presentation; `response_refused`: it was valid, but another part of the response was not
       * @enum {string}
       */
      error?: "malformed" | "issuer_typ" | "issuer_alg" | "issuer_key_unresolved" | "issuer_signature" | "untrusted_chain" | "certificate_expired" | "certificate_profile" | "x5c_contains_anchor" | "certificate_revoked" | "revocation_unavailable" | "unsupported_crit" | "unsupported_hash" | "duplicate_digest" | "duplicate_disclosure" | "unreferenced_disclosure" | "wrong_disclosure_length" | "malformed_disclosure" | "reserved_claim_name" | "claim_exists" | "forbidden_disclosure" | "malformed_sd" | "malformed_array_digest" | "nested_sd_alg" | "reserved_key" | "too_deep" | "credential_expired" | "credential_not_yet_valid" | "holder_binding_missing" | "holder_key_missing" | "kb_typ" | "kb_alg" | "kb_signature" | "kb_iat_window" | "kb_claim_missing" | "kb_claim_type" | "credential_audience" | "aud_mismatch" | "aud_not_string" | "nonce_mismatch" | "sd_hash_mismatch" | "transaction_data_missing" | "transaction_data_mismatch" | "transaction_data_alg" | "strong_authentication" | "digest_mismatch" | "duplicate_element" | "doctype_mismatch" | "signed_outside_certificate" | "issuer_country_mismatch" | "repeated_credential" | "unsupported_version" | "device_auth_missing" | "device_alg" | "device_signature" | "key_authorization" | "response_status" | "multiple_documents" | "format_mismatch" | "type_mismatch" | "missing_claim" | "value_mismatch" | "claim_set_unsatisfied" | "untrusted_authority" | "type_metadata_unavailable" | "type_metadata_invalid" | "type_metadata_broken" | "status_revoked" | "status_suspended" | "status_unknown" | "status_unavailable" | "status_invalid" | "missing" | "response_refused";
    };
    /** @description Signer of a credential */
    PresentedIssuerOutput: {
      /** @description Name in the certificate of the signer (RFC 4514) */
      subject: string;
      /** @description SHA-256 of that certificate, base64url */
      fingerprint: string;
      /** @description SHA-256 of its trust anchor, base64url */
      anchor: string;
      /** @description Addresses of trust lists with the anchor; absent for a configured anchor */
      listed?: {
        entity: string;
        list: string;
        sequenceNumber: number;
      }[];
    };
    /** @description Any JSON value */
    Json: unknown;
  };
  responses: never;
  parameters: never;
  requestBodies: never;
  headers: never;
  pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
  createAccessToken: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "grant_type": "client_credentials",
         *       "client_id": "acme-admin",
         *       "client_secret": "<client secret>"
         *     }
         */
        "application/json": components["schemas"]["AccessTokenRequest"];
        /**
         * @example {
         *       "grant_type": "client_credentials",
         *       "client_id": "acme-admin",
         *       "client_secret": "<client secret>"
         *     }
         */
        "application/x-www-form-urlencoded": components["schemas"]["AccessTokenRequest"];
      };
    };
    responses: {
      /** @description Done */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["AccessToken"];
        };
      };
    };
  };
  getConsoleLogin: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["ConsoleLogin"];
        };
      };
    };
  };
  logInToConsole: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "ticket": "<ticket of the printed link>"
         *     }
         */
        "application/json": components["schemas"]["ConsoleTicket"];
      };
    };
    responses: {
      /** @description Done */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["AccessToken"];
        };
      };
    };
  };
  getIdentity: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Client or user of an access token */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["Identity"];
        };
      };
    };
  };
  listTenants: {
    parameters: {
      query?: {
        /**
         * @description Entries of a page. Default: all
         * @example 20
         */
        limit?: number;
        /** @description From the `next` link of the previous page */
        cursor?: string;
        /**
         * @description Sort order by id. Default: that of the list
         * @example asc
         */
        sort?: "asc" | "desc";
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done */
      200: {
        headers: {
          /** @description With `rel="next"` the address of the next page; absent on the last one */
          Link?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["Tenant"][];
        };
      };
    };
  };
  createTenant: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "id": "acme",
         *       "name": "Acme",
         *       "roles": [
         *         "clients:manage",
         *         "issuance:manage",
         *         "issuance:offer",
         *         "presentation:manage",
         *         "presentation:request",
         *         "registrar:manage"
         *       ]
         *     }
         */
        "application/json": components["schemas"]["TenantCreation"];
      };
    };
    responses: {
      /** @description A tenant; the secret of a new administrator is shown once */
      201: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["WrittenTenant"];
        };
      };
    };
  };
  getTenant: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description Tenant id
         * @example acme
         */
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description A tenant with its clients */
      200: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["Tenant"];
        };
      };
    };
  };
  deleteTenant: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description The `ETag` of the edited object: if it has changed, the call changes nothing and returns 409
         * @example "the-etag-of-the-answer-before"
         */
        "If-Match"?: string;
      };
      path: {
        /**
         * @description Tenant id
         * @example acme
         */
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The id of the deleted object */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["Deleted"];
        };
      };
    };
  };
  updateTenant: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description The `ETag` of the edited object: if it has changed, the call changes nothing and returns 409
         * @example "the-etag-of-the-answer-before"
         */
        "If-Match"?: string;
      };
      path: {
        /**
         * @description Tenant id
         * @example acme
         */
        id: string;
      };
      cookie?: never;
    };
    requestBody?: {
      content: {
        /**
         * @example {
         *       "description": "Rockets and anvils",
         *       "sessionConfig": {
         *         "ttlSeconds": 3600
         *       }
         *     }
         */
        "application/json": components["schemas"]["TenantUpdate"];
      };
    };
    responses: {
      /** @description A tenant; the secret of a new administrator is shown once */
      200: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["WrittenTenant"];
        };
      };
    };
  };
  listTenantRemovals: {
    parameters: {
      query?: {
        /**
         * @description Entries of a page. Default: all
         * @example 20
         */
        limit?: number;
        /** @description From the `next` link of the previous page */
        cursor?: string;
        /**
         * @description Sort order by id. Default: that of the list
         * @example asc
         */
        sort?: "asc" | "desc";
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done */
      200: {
        headers: {
          /** @description With `rel="next"` the address of the next page; absent on the last one */
          Link?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["TenantRemoval"][];
        };
      };
    };
  };
  createOffer: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description Identifies this request, 1 to 255 printable characters, with or without quotes. For 24 hours the same client gets the same response for the same body, without another session; another body with the key is rejected with 409
         * @example order-4711
         */
        "Idempotency-Key"?: string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "response_type": "uri",
         *       "flow": "pre_authorized_code",
         *       "credentialConfigurationIds": [
         *         "pid"
         *       ],
         *       "credentialClaims": {
         *         "pid": {
         *           "type": "inline",
         *           "claims": {
         *             "given_name": "Ada",
         *             "family_name": "Lovelace"
         *           }
         *         }
         *       }
         *     }
         */
        "application/json": components["schemas"]["OfferRequest"];
      };
    };
    responses: {
      /** @description Created */
      201: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["Offer"];
        };
      };
    };
  };
  getIssuanceConfiguration: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done */
      200: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["IssuanceConfiguration"];
        };
      };
    };
  };
  replaceIssuanceConfiguration: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description The `ETag` of the edited object: if it has changed, the call changes nothing and returns 409
         * @example "the-etag-of-the-answer-before"
         */
        "If-Match"?: string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "display": [
         *         {
         *           "name": "Ministry of Examples",
         *           "locale": "en"
         *         }
         *       ],
         *       "batchSize": 1,
         *       "dPopRequired": true
         *     }
         */
        "application/json": components["schemas"]["IssuanceConfigurationInput"];
      };
    };
    responses: {
      /** @description Created */
      201: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["WrittenIssuanceConfiguration"];
        };
      };
    };
  };
  listCredentialConfigurations: {
    parameters: {
      query?: {
        /**
         * @description Entries of a page. Default: all
         * @example 20
         */
        limit?: number;
        /** @description From the `next` link of the previous page */
        cursor?: string;
        /**
         * @description Sort order by id. Default: that of the list
         * @example asc
         */
        sort?: "asc" | "desc";
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done */
      200: {
        headers: {
          /** @description With `rel="next"` the address of the next page; absent on the last one */
          Link?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["CredentialConfiguration"][];
        };
      };
    };
  };
  replaceCredentialConfiguration: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description The `ETag` of the edited object: if it has changed, the call changes nothing and returns 409
         * @example "the-etag-of-the-answer-before"
         */
        "If-Match"?: string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "id": "pid",
         *       "config": {
         *         "format": "dc+sd-jwt",
         *         "display": [
         *           {
         *             "name": "Person Identification Data",
         *             "locale": "en"
         *           }
         *         ]
         *       },
         *       "vct": "urn:eudi:pid:1",
         *       "claims": {
         *         "given_name": "Ada",
         *         "family_name": "Lovelace"
         *       },
         *       "disclosureFrame": {
         *         "_sd": [
         *           "given_name",
         *           "family_name"
         *         ]
         *       },
         *       "keyBinding": true,
         *       "statusManagement": true,
         *       "lifeTime": 31536000
         *     }
         */
        "application/json": components["schemas"]["CredentialConfigurationInput"];
      };
    };
    responses: {
      /** @description Created */
      201: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["WrittenCredentialConfiguration"];
        };
      };
    };
  };
  getCredentialConfiguration: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example pid */
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done */
      200: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["CredentialConfiguration"];
        };
      };
    };
  };
  deleteCredentialConfiguration: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description The `ETag` of the edited object: if it has changed, the call changes nothing and returns 409
         * @example "the-etag-of-the-answer-before"
         */
        "If-Match"?: string;
      };
      path: {
        /** @example pid */
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The id of the deleted object */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["Deleted"];
        };
      };
    };
  };
  updateCredentialConfiguration: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description The `ETag` of the edited object: if it has changed, the call changes nothing and returns 409
         * @example "the-etag-of-the-answer-before"
         */
        "If-Match"?: string;
      };
      path: {
        /** @example pid */
        id: string;
      };
      cookie?: never;
    };
    requestBody?: {
      content: {
        /**
         * @example {
         *       "description": "Issued to residents"
         *     }
         */
        "application/json": {
          /** @description `credential_configuration_id` of wallets and offers */
          id?: string;
          /** @description Published metadata of the credential, and its format */
          config?: components["schemas"]["CredentialConfig"];
          description?: string | null;
          vct?: (string | components["schemas"]["TypeMetadata"]) | null;
          vctIntegrity?: boolean | null;
          claims?: {
            [key: string]: components["schemas"]["Json"];
          } | null;
          claimsWebhook?: {
            /** @description Public https, or an address that `OUTBOUND_ALLOW` names; redirects are not followed */
            url: string;
            /** @description Header with an API key; optional */
            auth?: {
              /** @constant */
              type: "apiKey";
              config: {
                /** @description Such as `Authorization`; no connection header, none that begins with `content-` or `webhook-` */
                headerName: string;
                /** @description The whole value of the header, such as `Bearer …`. Responses show `***`; written back for the same address and header, that keeps the stored value */
                value: string;
              };
            };
          } | null;
          notificationWebhook?: {
            /** @description Public https, or an address that `OUTBOUND_ALLOW` names; redirects are not followed */
            url: string;
            /** @description Header with an API key; optional */
            auth?: {
              /** @constant */
              type: "apiKey";
              config: {
                /** @description Such as `Authorization`; no connection header, none that begins with `content-` or `webhook-` */
                headerName: string;
                /** @description The whole value of the header, such as `Bearer …`. Responses show `***`; written back for the same address and header, that keeps the stored value */
                value: string;
              };
            };
          } | null;
          iaeActions?: components["schemas"]["InteractiveAction"][] | null;
          embeddedDisclosurePolicy?: components["schemas"]["DisclosurePolicy"] | null;
          disclosureFrame?: {
            [key: string]: components["schemas"]["Json"];
          } | null;
          keyBinding?: boolean | null;
          proofTypes?: ("jwt" | "attestation")[] | null;
          keyAttestationsRequired?: {
            /** @description Accepted attack resistance of the key storage, such as `iso_18045_high`, at least one. Default: any */
            key_storage?: string[];
            /** @description Accepted attack resistance of the user authentication for the key, at least one. Default: any */
            user_authentication?: string[];
            /** @description Seconds for which wallet providers have to maintain the status of the attestation (TS3 1.5 section 2.4); for credentials that follow it, at least their lifetime. Default: the choice of the wallet */
            preferred_key_storage_status_period?: number;
          } | null;
          credentialReusePolicy?: components["schemas"]["CredentialReusePolicy"] | null;
          keyChainId?: string | null;
          statusManagement?: boolean | null;
          followWalletStatus?: boolean | null;
          maxIssuances?: number | null;
          subjectClaims?: string[][] | null;
          oneActiveSet?: boolean | null;
          lifeTime?: number | null;
          schema?: {
            [key: string]: components["schemas"]["Json"];
          } | null;
          /** @description The former name of `keyChainId`. A request that has both with different values is rejected with 400 */
          certId?: string | null;
          /** @description Null: the default of the tenant signs */
          readonly keyChain?: components["schemas"]["KeyChain"] | null;
          /** @description Same value, under its former name */
          readonly cert?: components["schemas"]["Certificate"] | null;
          readonly tenant?: components["schemas"]["TenantReference"];
          /** Format: date-time */
          readonly createdAt?: string;
          /** Format: date-time */
          readonly updatedAt?: string;
          /** @description Rules of wallets, verifiers or laws that the stored object violates */
          readonly warnings?: components["schemas"]["Warning"][];
        };
      };
    };
    responses: {
      /** @description Done */
      200: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["WrittenCredentialConfiguration"];
        };
      };
    };
  };
  listDeferredTransactions: {
    parameters: {
      query?: {
        /**
         * @description Entries of a page. Default: all
         * @example 20
         */
        limit?: number;
        /** @description From the `next` link of the previous page */
        cursor?: string;
        /**
         * @description Sort order by id. Default: that of the list
         * @example desc
         */
        sort?: "asc" | "desc";
        /**
         * @description Only transactions of this session
         * @example <session>
         */
        session?: string;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done */
      200: {
        headers: {
          /** @description With `rel="next"` the address of the next page; absent on the last one */
          Link?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["DeferredTransaction"][];
        };
      };
    };
  };
  getDeferredTransaction: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example <transaction> */
        transactionId: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["DeferredTransaction"];
        };
      };
    };
  };
  completeDeferredTransaction: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example <transaction> */
        transactionId: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "claims": {
         *         "given_name": "Ada",
         *         "family_name": "Lovelace"
         *       }
         *     }
         */
        "application/json": components["schemas"]["DeferredCompletion"];
      };
    };
    responses: {
      /** @description Done */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["WrittenDeferredDecision"];
        };
      };
    };
  };
  failDeferredTransaction: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example <transaction> */
        transactionId: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "errorMessage": "The register has no such person"
         *     }
         */
        "application/json": components["schemas"]["DeferredFailure"];
      };
    };
    responses: {
      /** @description Done */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["DeferredDecision"];
        };
      };
    };
  };
  createPresentationRequest: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description Identifies this request, 1 to 255 printable characters, with or without quotes. For 24 hours the same client gets the same response for the same body, without another session; another body with the key is rejected with 409
         * @example order-4711
         */
        "Idempotency-Key"?: string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "response_type": "uri",
         *       "requestId": "name-check"
         *     }
         */
        "application/json": components["schemas"]["PresentationRequest"];
      };
    };
    responses: {
      /** @description Created */
      201: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["PresentationOffer"];
        };
      };
    };
  };
  listPresentationConfigurations: {
    parameters: {
      query?: {
        /**
         * @description Entries of a page. Default: all
         * @example 20
         */
        limit?: number;
        /** @description From the `next` link of the previous page */
        cursor?: string;
        /**
         * @description Sort order by id. Default: that of the list
         * @example asc
         */
        sort?: "asc" | "desc";
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done */
      200: {
        headers: {
          /** @description With `rel="next"` the address of the next page; absent on the last one */
          Link?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["PresentationConfiguration"][];
        };
      };
    };
  };
  replacePresentationConfiguration: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description The `ETag` of the edited object: if it has changed, the call changes nothing and returns 409
         * @example "the-etag-of-the-answer-before"
         */
        "If-Match"?: string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "id": "name-check",
         *       "description": "Who is the visitor?",
         *       "dcql_query": {
         *         "credentials": [
         *           {
         *             "id": "pid",
         *             "format": "dc+sd-jwt",
         *             "meta": {
         *               "vct_values": [
         *                 "urn:eudi:pid:1"
         *               ]
         *             },
         *             "claims": [
         *               {
         *                 "path": [
         *                   "given_name"
         *                 ]
         *               }
         *             ]
         *           }
         *         ]
         *       },
         *       "trustAnchors": [
         *         {
         *           "keyChainId": "signing"
         *         }
         *       ],
         *       "lifeTime": 300,
         *       "redirectUri": "https://shop.example/done?session={sessionId}",
         *       "expectedOrigins": [
         *         "https://shop.example"
         *       ]
         *     }
         */
        "application/json": components["schemas"]["PresentationConfigurationInput"];
      };
    };
    responses: {
      /** @description Created */
      201: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["WrittenPresentationConfiguration"];
        };
      };
    };
  };
  getPresentationConfiguration: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example name-check */
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done */
      200: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["PresentationConfiguration"];
        };
      };
    };
  };
  deletePresentationConfiguration: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description The `ETag` of the edited object: if it has changed, the call changes nothing and returns 409
         * @example "the-etag-of-the-answer-before"
         */
        "If-Match"?: string;
      };
      path: {
        /** @example name-check */
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The id of the deleted object */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["Deleted"];
        };
      };
    };
  };
  updatePresentationConfiguration: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description The `ETag` of the edited object: if it has changed, the call changes nothing and returns 409
         * @example "the-etag-of-the-answer-before"
         */
        "If-Match"?: string;
      };
      path: {
        /** @example name-check */
        id: string;
      };
      cookie?: never;
    };
    requestBody?: {
      content: {
        /**
         * @example {
         *       "lifeTime": 600,
         *       "redirectUri": null
         *     }
         */
        "application/json": components["schemas"]["PresentationConfigurationUpdate"];
      };
    };
    responses: {
      /** @description Done */
      200: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["WrittenPresentationConfiguration"];
        };
      };
    };
  };
  tryPresentation: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example name-check */
        id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "presentation": "eyJhbGciOiJFUzI1NiJ9.eyJ2Y3QiOiJ1cm46ZXVkaTpwaWQ6MSJ9.c2lnbmF0dXJl~"
         *     }
         */
        "application/json": components["schemas"]["PresentationToTry"];
      };
    };
    responses: {
      /** @description Result of a presentation for a query */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["PresentationTrial"];
        };
      };
    };
  };
  revokeCredentials: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "sessionId": "<session>",
         *       "status": 1,
         *       "reason": "The employment ended"
         *     }
         */
        "application/json": components["schemas"]["Revocation"];
      };
    };
    responses: {
      /** @description Created */
      201: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["Revoked"];
        };
      };
    };
  };
  listSessionStatuses: {
    parameters: {
      query?: {
        /** @example 20 */
        limit?: number;
        /** @description From the `next` link of the previous page */
        cursor?: string;
        /**
         * @description By time of issuance
         * @example asc
         */
        sort?: "asc" | "desc";
      };
      header?: never;
      path: {
        /**
         * @description Session id
         * @example <session>
         */
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done */
      200: {
        headers: {
          /** @description With `rel="next"` the address of the next page; absent on the last one */
          Link?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["CredentialStatus"][];
        };
      };
    };
  };
  revokeCredentialsBySubject: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "claims": {
         *         "personal_administrative_number": "1815-12-10"
         *       },
         *       "subjectClaims": [
         *         [
         *           "personal_administrative_number"
         *         ]
         *       ]
         *     }
         */
        "application/json": components["schemas"]["SubjectRevocation"];
      };
    };
    responses: {
      /** @description Created */
      201: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["RevokedBySubject"];
        };
      };
    };
  };
  countSessions: {
    parameters: {
      query?: {
        /**
         * @description Period of creation of the sessions, until now
         * @example 7d
         */
        period?: "24h" | "7d";
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Outcomes of the most recent sessions */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["SessionRates"];
        };
      };
    };
  };
  listSessions: {
    parameters: {
      query?: {
        /** @example active */
        status?: "active" | "fetched" | "completed" | "expired" | "failed";
        /**
         * @description Only sessions created at this time or later
         * @example 2026-01-01T00:00:00Z
         */
        since?: string;
        /** @description Only sessions with exactly this id, `reference`, link or address in it, code, or nonce of a request */
        q?: string;
        /** @example 20 */
        limit?: number;
        /** @description From the `next` link of the previous page */
        cursor?: string;
        /**
         * @description By time of creation
         * @example desc
         */
        sort?: "asc" | "desc";
        /** @description With `masked` every value of a person is replaced; names of claims stay */
        values?: "masked";
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done */
      200: {
        headers: {
          /** @description With `rel="next"` the address of the next page; absent on the last one */
          Link?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["Session"][];
        };
      };
    };
  };
  getSession: {
    parameters: {
      query?: {
        /** @description With `masked` every value of a person is replaced; names of claims stay */
        values?: "masked";
        /**
         * @description Code that the browser returned; valid once, for five minutes, and only for its session. If the configuration has requireResponseCode, it completes the session
         * @example <response code>
         */
        response_code?: string;
      };
      header?: never;
      path: {
        /**
         * @description Session id
         * @example <session>
         */
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description One offer or presentation request, from its creation to its end */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["Session"];
        };
      };
    };
  };
  deleteSession: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description Session id
         * @example <session>
         */
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The id of the deleted object */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["Deleted"];
        };
      };
    };
  };
  showSession: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description Session id
         * @example <session>
         */
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description One offer or presentation request, from its creation to its end */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["Session"];
        };
      };
    };
  };
  cancelSession: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description Session id
         * @example <session>
         */
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description One offer or presentation request, from its creation to its end */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["Session"];
        };
      };
    };
  };
  retryDelivery: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description Session id
         * @example <session>
         */
        id: string;
        /**
         * @description `deliveries[].id` of the session
         * @example <delivery>
         */
        deliveryId: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description One delivery to a webhook and its result */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["Delivery"];
        };
      };
    };
  };
  watchSession: {
    parameters: {
      query?: {
        /**
         * @description Access token, for clients that cannot send headers
         * @example <access token>
         */
        token?: string;
      };
      header?: never;
      path: {
        /**
         * @description Session id
         * @example <session>
         */
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Each `data` is one such object; comments keep the connection alive */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "text/event-stream": components["schemas"]["SessionStatus"];
        };
      };
    };
  };
  getSessionStorage: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Settings of new sessions of the tenant */
      200: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["EffectiveSessionStorageConfig"];
        };
      };
    };
  };
  replaceSessionStorage: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description The `ETag` of the edited object: if it has changed, the call changes nothing and returns 409
         * @example "the-etag-of-the-answer-before"
         */
        "If-Match"?: string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody?: {
      content: {
        /**
         * @example {
         *       "ttlSeconds": 3600,
         *       "cleanupMode": "anonymize"
         *     }
         */
        "application/json": components["schemas"]["SessionStorageConfig"];
      };
    };
    responses: {
      /** @description Settings of new sessions of the tenant */
      200: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["WrittenEffectiveSessionStorageConfig"];
        };
      };
    };
  };
  resetSessionStorage: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description The `ETag` of the edited object: if it has changed, the call changes nothing and returns 409
         * @example "the-etag-of-the-answer-before"
         */
        "If-Match"?: string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Settings of new sessions of the tenant */
      200: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["EffectiveSessionStorageConfig"];
        };
      };
    };
  };
  listClients: {
    parameters: {
      query?: {
        /**
         * @description Entries of a page. Default: all
         * @example 20
         */
        limit?: number;
        /** @description From the `next` link of the previous page */
        cursor?: string;
        /**
         * @description Sort order by id. Default: that of the list
         * @example asc
         */
        sort?: "asc" | "desc";
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done */
      200: {
        headers: {
          /** @description With `rel="next"` the address of the next page; absent on the last one */
          Link?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["Client"][];
        };
      };
    };
  };
  createClient: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "clientId": "shop-backend",
         *       "roles": [
         *         "presentation:request"
         *       ],
         *       "description": "Web shop"
         *     }
         */
        "application/json": components["schemas"]["ClientCreation"];
      };
    };
    responses: {
      /** @description A client. Its secret is stored hashed and never shown here. */
      201: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["WrittenClient"];
        };
      };
    };
  };
  getClient: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description Client id
         * @example shop-backend
         */
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description A client. Its secret is stored hashed and never shown here. */
      200: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["Client"];
        };
      };
    };
  };
  deleteClient: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description The `ETag` of the edited object: if it has changed, the call changes nothing and returns 409
         * @example "the-etag-of-the-answer-before"
         */
        "If-Match"?: string;
      };
      path: {
        /**
         * @description Client id
         * @example shop-backend
         */
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The id of the deleted object */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["Deleted"];
        };
      };
    };
  };
  updateClient: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description The `ETag` of the edited object: if it has changed, the call changes nothing and returns 409
         * @example "the-etag-of-the-answer-before"
         */
        "If-Match"?: string;
      };
      path: {
        /**
         * @description Client id
         * @example shop-backend
         */
        id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "roles": [
         *         "presentation:request",
         *         "issuance:offer"
         *       ]
         *     }
         */
        "application/json": components["schemas"]["ClientUpdate"];
      };
    };
    responses: {
      /** @description A client. Its secret is stored hashed and never shown here. */
      200: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["WrittenClient"];
        };
      };
    };
  };
  getClientSecret: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description Client id
         * @example shop-backend
         */
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Shown once. Save it now. */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["ClientSecret"];
        };
      };
    };
  };
  rotateClientSecret: {
    parameters: {
      query?: {
        /**
         * @description Seconds for which issued access tokens remain valid
         * @example 300
         */
        graceSeconds?: number;
      };
      header?: never;
      path: {
        /**
         * @description Client id
         * @example shop-backend
         */
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Shown once. Save it now. */
      201: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["ClientSecret"];
        };
      };
    };
  };
  listKeyChains: {
    parameters: {
      query?: {
        /**
         * @description Entries of a page. Default: all
         * @example 20
         */
        limit?: number;
        /** @description From the `next` link of the previous page */
        cursor?: string;
        /**
         * @description Sort order by id. Default: that of the list
         * @example asc
         */
        sort?: "asc" | "desc";
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done */
      200: {
        headers: {
          /** @description With `rel="next"` the address of the next page; absent on the last one */
          Link?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["KeyChain"][];
        };
      };
    };
  };
  createKeyChain: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "id": "pid-signing",
         *       "usageType": "signing",
         *       "description": "Signs PID credentials"
         *     }
         */
        "application/json": components["schemas"]["KeyChainCreation"];
      };
    };
    responses: {
      /** @description A key with its certificates */
      201: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["WrittenKeyChain"];
        };
      };
    };
  };
  listKeyProviders: {
    parameters: {
      query?: {
        /**
         * @description Entries of a page. Default: all
         * @example 20
         */
        limit?: number;
        /** @description From the `next` link of the previous page */
        cursor?: string;
        /**
         * @description Sort order by id. Default: that of the list
         * @example asc
         */
        sort?: "asc" | "desc";
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done */
      200: {
        headers: {
          /** @description With `rel="next"` the address of the next page; absent on the last one */
          Link?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["KeyProvider"][];
        };
      };
    };
  };
  getKeyChain: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description Key chain id
         * @example pid-signing
         */
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description A key with its certificates */
      200: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["KeyChain"];
        };
      };
    };
  };
  deleteKeyChain: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description The `ETag` of the edited object: if it has changed, the call changes nothing and returns 409
         * @example "the-etag-of-the-answer-before"
         */
        "If-Match"?: string;
      };
      path: {
        /**
         * @description Key chain id
         * @example pid-signing
         */
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The id of the deleted object */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["Deleted"];
        };
      };
    };
  };
  updateKeyChain: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description The `ETag` of the edited object: if it has changed, the call changes nothing and returns 409
         * @example "the-etag-of-the-answer-before"
         */
        "If-Match"?: string;
      };
      path: {
        /**
         * @description Key chain id
         * @example pid-signing
         */
        id: string;
      };
      cookie?: never;
    };
    requestBody?: {
      content: {
        /**
         * @example {
         *       "description": "Signs diplomas"
         *     }
         */
        "application/json": components["schemas"]["KeyChainUpdate"];
      };
    };
    responses: {
      /** @description A key with its certificates */
      200: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["WrittenKeyChain"];
        };
      };
    };
  };
  importKeyChain: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "id": "imported",
         *       "usageType": "signing",
         *       "key": {
         *         "kty": "EC",
         *         "crv": "P-256",
         *         "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
         *         "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
         *         "d": "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"
         *       }
         *     }
         */
        "application/json": components["schemas"]["KeyChainImport"];
      };
    };
    responses: {
      /** @description A key with its certificates */
      201: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["WrittenKeyChain"];
        };
      };
    };
  };
  rotateKeyChain: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description Key chain id
         * @example pid-signing
         */
        id: string;
      };
      cookie?: never;
    };
    requestBody?: {
      content: {
        /** @example {} */
        "application/json": components["schemas"]["KeyChainRotation"];
      };
    };
    responses: {
      /** @description A key chain after its rotation */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["WrittenRotatedKeyChain"];
        };
      };
    };
  };
  createKeyChainRequest: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description Key chain id
         * @example pid-signing
         */
        id: string;
      };
      cookie?: never;
    };
    requestBody?: {
      content: {
        /**
         * @example {
         *       "subjectName": "Acme",
         *       "organization": "Acme Ltd",
         *       "country": "DE"
         *     }
         */
        "application/json": components["schemas"]["CertificateSigningRequest"];
      };
    };
    responses: {
      /** @description Certificate signing request for the authority that certifies the key */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["CertificateRequest"];
        };
      };
    };
  };
  listCertificates: {
    parameters: {
      query?: {
        /**
         * @description Entries of a page. Default: all
         * @example 20
         */
        limit?: number;
        /** @description From the `next` link of the previous page */
        cursor?: string;
        /**
         * @description Sort order by id. Default: that of the list
         * @example asc
         */
        sort?: "asc" | "desc";
        /**
         * @description Only certificates of this key
         * @example signing
         */
        keyId?: string;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done */
      200: {
        headers: {
          /** @description With `rel="next"` the address of the next page; absent on the last one */
          Link?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["Certificate"][];
        };
      };
    };
  };
  createCertificate: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "keyId": "signing",
         *       "certUsageTypes": [
         *         "signing"
         *       ],
         *       "id": "signing-2",
         *       "subjectName": "Acme PID"
         *     }
         */
        "application/json": components["schemas"]["CertificateCreation"];
      };
    };
    responses: {
      /** @description A certificate chain and its key */
      201: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["WrittenCertificate"];
        };
      };
    };
  };
  getCertificate: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description Certificate id
         * @example signing-2
         */
        certId: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description A certificate chain and its key */
      200: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["Certificate"];
        };
      };
    };
  };
  deleteCertificate: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description The `ETag` of the edited object: if it has changed, the call changes nothing and returns 409
         * @example "the-etag-of-the-answer-before"
         */
        "If-Match"?: string;
      };
      path: {
        /**
         * @description Certificate id
         * @example signing-2
         */
        certId: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The id of the deleted object */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["Deleted"];
        };
      };
    };
  };
  updateCertificate: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description The `ETag` of the edited object: if it has changed, the call changes nothing and returns 409
         * @example "the-etag-of-the-answer-before"
         */
        "If-Match"?: string;
      };
      path: {
        /**
         * @description Certificate id
         * @example signing-2
         */
        certId: string;
      };
      cookie?: never;
    };
    requestBody?: {
      content: {
        /**
         * @example {
         *       "description": "Signs diplomas"
         *     }
         */
        "application/json": components["schemas"]["CertificateUpdate"];
      };
    };
    responses: {
      /** @description A certificate chain and its key */
      200: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["WrittenCertificate"];
        };
      };
    };
  };
  createCertificateRequest: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description Certificate id
         * @example signing-2
         */
        certId: string;
      };
      cookie?: never;
    };
    requestBody?: {
      content: {
        /**
         * @example {
         *       "subjectName": "Acme",
         *       "organization": "Acme Ltd",
         *       "country": "DE"
         *     }
         */
        "application/json": components["schemas"]["CertificateSigningRequest"];
      };
    };
    responses: {
      /** @description Certificate signing request for the authority that certifies the key */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["CertificateRequest"];
        };
      };
    };
  };
  listKeys: {
    parameters: {
      query?: {
        /**
         * @description Entries of a page. Default: all
         * @example 20
         */
        limit?: number;
        /** @description From the `next` link of the previous page */
        cursor?: string;
        /**
         * @description Sort order by id. Default: that of the list
         * @example asc
         */
        sort?: "asc" | "desc";
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done */
      200: {
        headers: {
          /** @description With `rel="next"` the address of the next page; absent on the last one */
          Link?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["Key"][];
        };
      };
    };
  };
  createKey: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: {
      content: {
        /**
         * @example {
         *       "id": "diplomas",
         *       "description": "Signs diplomas"
         *     }
         */
        "application/json": components["schemas"]["KeyCreation"];
      };
    };
    responses: {
      /** @description A key; its private part is never shown */
      201: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["WrittenKey"];
        };
      };
    };
  };
  getKey: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description Key id
         * @example diplomas
         */
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description A key; its private part is never shown */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["Key"];
        };
      };
    };
  };
  deleteKey: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description Key id
         * @example diplomas
         */
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The id of the deleted object */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["Deleted"];
        };
      };
    };
  };
  listStatusLists: {
    parameters: {
      query?: {
        /**
         * @description Entries of a page. Default: all
         * @example 20
         */
        limit?: number;
        /** @description From the `next` link of the previous page */
        cursor?: string;
        /**
         * @description Sort order by id. Default: that of the list
         * @example asc
         */
        sort?: "asc" | "desc";
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done */
      200: {
        headers: {
          /** @description With `rel="next"` the address of the next page; absent on the last one */
          Link?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["StatusList"][];
        };
      };
    };
  };
  createStatusList: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: {
      content: {
        /**
         * @example {
         *       "bits": 2,
         *       "capacity": 10000
         *     }
         */
        "application/json": components["schemas"]["StatusListCreation"];
      };
    };
    responses: {
      /** @description A status list with its administrative properties */
      201: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["WrittenStatusList"];
        };
      };
    };
  };
  getStatusList: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example <status list> */
        listId: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description A status list with its administrative properties */
      200: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["StatusList"];
        };
      };
    };
  };
  deleteStatusList: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description The `ETag` of the edited object: if it has changed, the call changes nothing and returns 409
         * @example "the-etag-of-the-answer-before"
         */
        "If-Match"?: string;
      };
      path: {
        /** @example <status list> */
        listId: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done */
      204: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content?: never;
      };
    };
  };
  updateStatusList: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description The `ETag` of the edited object: if it has changed, the call changes nothing and returns 409
         * @example "the-etag-of-the-answer-before"
         */
        "If-Match"?: string;
      };
      path: {
        /** @example <status list> */
        listId: string;
      };
      cookie?: never;
    };
    requestBody?: {
      content: {
        /**
         * @example {
         *       "credentialConfigurationId": null
         *     }
         */
        "application/json": components["schemas"]["StatusListUpdate"];
      };
    };
    responses: {
      /** @description A status list with its administrative properties */
      200: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["WrittenStatusList"];
        };
      };
    };
  };
  getStatusListDefaults: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Settings of future status lists */
      200: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["EffectiveStatusListConfig"];
        };
      };
    };
  };
  replaceStatusListDefaults: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description The `ETag` of the edited object: if it has changed, the call changes nothing and returns 409
         * @example "the-etag-of-the-answer-before"
         */
        "If-Match"?: string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody?: {
      content: {
        /**
         * @example {
         *       "bits": 2,
         *       "ttl": 900,
         *       "immediateUpdate": true
         *     }
         */
        "application/json": components["schemas"]["StatusListConfig"];
      };
    };
    responses: {
      /** @description Settings of future status lists */
      200: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["WrittenEffectiveStatusListConfig"];
        };
      };
    };
  };
  listTrustLists: {
    parameters: {
      query?: {
        /**
         * @description Entries of a page. Default: all
         * @example 20
         */
        limit?: number;
        /** @description From the `next` link of the previous page */
        cursor?: string;
        /**
         * @description Sort order by id. Default: that of the list
         * @example asc
         */
        sort?: "asc" | "desc";
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done */
      200: {
        headers: {
          /** @description With `rel="next"` the address of the next page; absent on the last one */
          Link?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["TrustList"][];
        };
      };
    };
  };
  createTrustList: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "id": "universities",
         *       "description": "Who issues student cards",
         *       "entities": [
         *         {
         *           "type": "internal",
         *           "issuerKeyChainId": "signing",
         *           "revocationKeyChainId": "status-list",
         *           "info": {
         *             "name": "Acme University",
         *             "country": "DE",
         *             "streetAddress": "Main Street 1",
         *             "uri": "https://university.example"
         *           }
         *         }
         *       ],
         *       "data": {
         *         "LoTE": {
         *           "ListAndSchemeInformation": {
         *             "SchemeName": [
         *               {
         *                 "lang": "en",
         *                 "value": "DE:Universities"
         *               }
         *             ]
         *           }
         *         }
         *       }
         *     }
         */
        "application/json": components["schemas"]["TrustListInput"];
      };
    };
    responses: {
      /** @description Created */
      201: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["WrittenTrustList"];
        };
      };
    };
  };
  getTrustList: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example universities */
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done */
      200: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["TrustList"];
        };
      };
    };
  };
  replaceTrustList: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description The `ETag` of the edited object: if it has changed, the call changes nothing and returns 409
         * @example "the-etag-of-the-answer-before"
         */
        "If-Match"?: string;
      };
      path: {
        /** @example universities */
        id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "description": "No tenant at present",
         *       "entities": []
         *     }
         */
        "application/json": components["schemas"]["TrustListInput"];
      };
    };
    responses: {
      /** @description Done */
      200: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["WrittenTrustList"];
        };
      };
    };
  };
  deleteTrustList: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description The `ETag` of the edited object: if it has changed, the call changes nothing and returns 409
         * @example "the-etag-of-the-answer-before"
         */
        "If-Match"?: string;
      };
      path: {
        /** @example universities */
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The id of the deleted object */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["Deleted"];
        };
      };
    };
  };
  updateTrustList: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description The `ETag` of the edited object: if it has changed, the call changes nothing and returns 409
         * @example "the-etag-of-the-answer-before"
         */
        "If-Match"?: string;
      };
      path: {
        /** @example universities */
        id: string;
      };
      cookie?: never;
    };
    requestBody?: {
      content: {
        /**
         * @example {
         *       "entities": [
         *         {
         *           "type": "internal",
         *           "issuerKeyChainId": "signing",
         *           "revocationKeyChainId": "status-list",
         *           "info": {
         *             "name": "Acme University",
         *             "country": "DE",
         *             "streetAddress": "Main Street 1",
         *             "uri": "https://university.example"
         *           }
         *         }
         *       ]
         *     }
         */
        "application/json": components["schemas"]["TrustListUpdate"];
      };
    };
    responses: {
      /** @description Done */
      200: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["WrittenTrustList"];
        };
      };
    };
  };
  exportTrustList: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example universities */
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Body of POST and PUT that creates this list */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["TrustListExport"];
        };
      };
    };
  };
  listTrustListVersions: {
    parameters: {
      query?: {
        /** @example 20 */
        limit?: number;
        /** @description From the `next` link of the previous page */
        cursor?: string;
        /**
         * @description By number
         * @example asc
         */
        sort?: "asc" | "desc";
      };
      header?: never;
      path: {
        /** @example universities */
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done */
      200: {
        headers: {
          /** @description With `rel="next"` the address of the next page; absent on the last one */
          Link?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["TrustListVersion"][];
        };
      };
    };
  };
  getTrustListVersion: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example universities */
        id: string;
        /** @example <version> */
        versionId: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description A previous version of a trust list */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["TrustListVersion"];
        };
      };
    };
  };
  listFollowedTrustLists: {
    parameters: {
      query?: {
        /**
         * @description Entries of a page. Default: all
         * @example 20
         */
        limit?: number;
        /** @description From the `next` link of the previous page */
        cursor?: string;
        /**
         * @description Sort order by id. Default: that of the list
         * @example asc
         */
        sort?: "asc" | "desc";
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done */
      200: {
        headers: {
          /** @description With `rel="next"` the address of the next page; absent on the last one */
          Link?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["FollowedTrustList"][];
        };
      };
    };
  };
  confirmTrustListSigner: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example <followed list> */
        id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "fingerprint": "<fingerprint>"
         *     }
         */
        "application/json": components["schemas"]["SignerConfirmation"];
      };
    };
    responses: {
      /** @description Done */
      204: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
    };
  };
  forecastTrust: {
    parameters: {
      query?: {
        /**
         * @description Only objects that expire by this time; for a date, the end of that day (UTC)
         * @example 2027-01-01T00:00:00Z
         */
        until?: string;
        /** @description Only objects of this kind */
        kind?: "key-chain" | "authority" | "anchor" | "list-signer" | "followed-list" | "published-list" | "registration-certificate";
        /** @description Only objects with this text in their id or name, or in the id of a configuration that fails then */
        q?: string;
        /** @example 20 */
        limit?: number;
        /** @description From the `next` link of the previous page */
        cursor?: string;
        /** @description By expiry */
        sort?: "asc" | "desc";
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done */
      200: {
        headers: {
          /** @description With `rel="next"` the address of the next page; absent on the last one */
          Link?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["TrustForecastItem"][];
        };
      };
    };
  };
  getRegistrarConfiguration: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The login of the tenant at its registrar, without secrets */
      200: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["RegistrarConfiguration"];
        };
      };
    };
  };
  replaceRegistrarConfiguration: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description The `ETag` of the edited object: if it has changed, the call changes nothing and returns 409
         * @example "the-etag-of-the-answer-before"
         */
        "If-Match"?: string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "registrarUrl": "https://registrar.example/api",
         *       "oidcUrl": "https://login.registrar.example/realms/relying-parties",
         *       "clientId": "vidimus",
         *       "username": "acme",
         *       "password": "the password of the account",
         *       "registrationCertificateDefaults": {
         *         "privacy_policy": "https://acme.example/privacy",
         *         "support_uri": "https://acme.example/help",
         *         "purpose": [
         *           {
         *             "lang": "en",
         *             "content": "Opening an account"
         *           }
         *         ]
         *       }
         *     }
         */
        "application/json": components["schemas"]["RegistrarConfigurationInput"];
      };
    };
    responses: {
      /** @description The login of the tenant at its registrar, without secrets */
      201: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["WrittenRegistrarConfiguration"];
        };
      };
    };
  };
  deleteRegistrarConfiguration: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description The `ETag` of the edited object: if it has changed, the call changes nothing and returns 409
         * @example "the-etag-of-the-answer-before"
         */
        "If-Match"?: string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The id of the deleted object */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["Deleted"];
        };
      };
    };
  };
  updateRegistrarConfiguration: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description The `ETag` of the edited object: if it has changed, the call changes nothing and returns 409
         * @example "the-etag-of-the-answer-before"
         */
        "If-Match"?: string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody?: {
      content: {
        /**
         * @example {
         *       "password": "the new password of the account"
         *     }
         */
        "application/json": components["schemas"]["RegistrarConfigurationUpdate"];
      };
    };
    responses: {
      /** @description The login of the tenant at its registrar, without secrets */
      200: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["WrittenRegistrarConfiguration"];
        };
      };
    };
  };
  orderAccessCertificate: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "keyChainId": "access",
         *       "dns": [
         *         "verifier.acme.example"
         *       ]
         *     }
         */
        "application/json": components["schemas"]["AccessCertificateOrder"];
      };
    };
    responses: {
      /** @description Signs requests to wallets from now on */
      201: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["AccessCertificate"];
        };
      };
    };
  };
  orderRegistrationCertificate: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "body": {
         *         "purpose": [
         *           {
         *             "lang": "en",
         *             "content": "Opening an account"
         *           }
         *         ]
         *       },
         *       "presentationConfigurationId": "name-check"
         *     }
         */
        "application/json": components["schemas"]["RegistrationCertificateOrder"];
      };
    };
    responses: {
      /** @description A registration certificate (ETSI TS 119 475) */
      201: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["RegistrationCertificate"];
        };
      };
    };
  };
  getWebhookSecret: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Secrets that sign calls to backends. Secrets are never shown. */
      200: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["WebhookSecret"];
        };
      };
    };
  };
  updateWebhookSecret: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description The `ETag` of the edited object: if it has changed, the call changes nothing and returns 409
         * @example "the-etag-of-the-answer-before"
         */
        "If-Match"?: string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "signing": "v1"
         *     }
         */
        "application/json": components["schemas"]["WebhookSecretUpdate"];
      };
    };
    responses: {
      /** @description Secrets that sign calls to backends. Secrets are never shown. */
      200: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["WrittenWebhookSecret"];
        };
      };
    };
  };
  rotateWebhookSecret: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description The `ETag` of the edited object: if it has changed, the call changes nothing and returns 409
         * @example "the-etag-of-the-answer-before"
         */
        "If-Match"?: string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody?: {
      content: {
        /**
         * @example {
         *       "overlapSeconds": 86400
         *     }
         */
        "application/json": components["schemas"]["WebhookSecretRotation"];
      };
    };
    responses: {
      /** @description A new secret, which signs from now on */
      201: {
        headers: {
          /** @description Version of the object, for `If-Match` */
          ETag?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["CreatedWebhookSecret"];
        };
      };
    };
  };
  getCacheStatistics: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["CacheStats"];
        };
      };
    };
  };
  clearCaches: {
    parameters: {
      query?: {
        /**
         * @description True deletes the newest sequence numbers, too, for a list whose operator restarted its numbers. Otherwise they are kept, so that an older list is rejected.
         * @example true
         */
        releases?: "true" | "false";
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done */
      204: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
    };
  };
  clearTrustListCache: {
    parameters: {
      query?: {
        /**
         * @description True deletes the newest sequence numbers, too, for a list whose operator restarted its numbers. Otherwise they are kept, so that an older list is rejected.
         * @example true
         */
        releases?: "true" | "false";
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done */
      204: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
    };
  };
  clearStatusListCache: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done */
      204: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
    };
  };
  listAuditEntries: {
    parameters: {
      query?: {
        /** @description Tenant of the log, for `tenants:manage`. Default: the log of the service */
        tenant?: string;
        /** @description Client id, or `system` for the service itself */
        actor?: string;
        /**
         * @description Kind of the changed object
         * @example client
         */
        kind?: "tenant" | "client" | "key-chain" | "issuance-configuration" | "credential-configuration" | "presentation-configuration" | "registrar-configuration" | "registration-certificate" | "status-list" | "trust-list" | "webhook-secret" | "session" | "deferred-transaction" | "wallet-status-list" | "followed-trust-list" | "cache" | "audit-log";
        /** @description Id of the changed object */
        target?: string;
        action?: "created" | "changed" | "removed" | "rotated" | "requested" | "renewed" | "fetched" | "expired" | "revoked" | "suspended" | "restored" | "cancelled" | "retried" | "shown" | "completed" | "failed" | "held" | "confirmed" | "cleared" | "begun" | "fenced" | "pruned" | "broken";
        /**
         * @description Only entries of this time or later
         * @example 2026-01-01T00:00:00Z
         */
        since?: string;
        /** @description Only entries before this time */
        until?: string;
        /** @example 20 */
        limit?: number;
        /** @description From the `next` link of the previous page */
        cursor?: string;
        /**
         * @description By number
         * @example desc
         */
        sort?: "asc" | "desc";
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done */
      200: {
        headers: {
          /** @description With `rel="next"` the address of the next page; absent on the last one */
          Link?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["AuditEntry"][];
        };
      };
    };
  };
  verifyAuditLog: {
    parameters: {
      query?: {
        /** @description Tenant of the log, for `tenants:manage`. Default: the log of the service */
        tenant?: string;
        /** @description `next` of the previous response; without it verification begins with the first stored entry */
        cursor?: string;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Result of verifying the chain of the audit log */
      200: {
        headers: {
          /** @description With `rel="next"` the address of the next page; absent on the last one */
          Link?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["AuditVerification"];
        };
      };
    };
  };
  getService: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["Service"];
          "text/html": string;
        };
      };
    };
  };
  getHealth: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["Health"];
        };
      };
    };
  };
  getLiveness: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["Liveness"];
        };
      };
    };
  };
  getReadiness: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["Health"];
        };
      };
    };
  };
  listSettings: {
    parameters: {
      query?: {
        /**
         * @description Entries of a page. Default: all
         * @example 20
         */
        limit?: number;
        /** @description From the `next` link of the previous page */
        cursor?: string;
        /**
         * @description Sort order by id. Default: that of the list
         * @example asc
         */
        sort?: "asc" | "desc";
        /**
         * @description Only settings with this text in their name, value or description, case-insensitive
         * @example database
         */
        q?: string;
        /**
         * @description Only settings with this source
         * @example environment
         */
        source?: "environment" | "file" | "default";
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done */
      200: {
        headers: {
          /** @description With `rel="next"` the address of the next page; absent on the last one */
          Link?: string;
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["Setting"][];
        };
      };
    };
  };
  getConsole: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description An HTML page */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "text/html": string;
        };
      };
    };
  };
  getConsoleFile: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example icon.svg */
        file: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description A script, a style sheet or an image */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
    };
  };
  getApiDocument: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": {
            [key: string]: unknown;
          };
        };
      };
    };
  };
  getApiPage: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description An HTML page */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "text/html": string;
        };
      };
    };
  };
  getApiPageFile: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @example swagger-ui.css */
        file: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description One of: swagger-ui.css, swagger-ui-bundle.js, favicon-32x32.png, start.js */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
    };
  };
  pollDeferredCredential: {
    parameters: {
      query?: {
        /** @example <transaction> */
        transaction_id?: string;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Done */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": {
            credentials: {
              credential: string;
            }[];
            notification_id: string;
            credential: string;
          };
        };
      };
    };
  };
  claimsWebhook: {
    parameters: {
      query?: never;
      header: {
        /** @description Id of this delivery; except for web steps also `deliveries[].id` of the session */
        "Idempotency-Key": string;
        /** @description Same value, as the header of Standard Webhooks */
        "webhook-id"?: string;
        /** @description Time of this call in seconds since 1970. Reject calls that differ by more than five minutes */
        "webhook-timestamp"?: string;
        /** @description `v1,` and the base64 of HMAC-SHA-256 over `<webhook-id>.<webhook-timestamp>.<body>`, the body byte for byte; one for each secret that signs, separated by spaces */
        "webhook-signature"?: string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["ClaimsRequest"];
      };
    };
    responses: {
      /** @description Taken */
      "2XX": {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["ClaimsAnswer"];
        };
      };
    };
  };
  notificationWebhook: {
    parameters: {
      query?: never;
      header: {
        /** @description Id of this delivery; except for web steps also `deliveries[].id` of the session */
        "Idempotency-Key": string;
        /** @description Same value, as the header of Standard Webhooks */
        "webhook-id"?: string;
        /** @description Time of this call in seconds since 1970. Reject calls that differ by more than five minutes */
        "webhook-timestamp"?: string;
        /** @description `v1,` and the base64 of HMAC-SHA-256 over `<webhook-id>.<webhook-timestamp>.<body>`, the body byte for byte; one for each secret that signs, separated by spaces */
        "webhook-signature"?: string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["NotificationDelivery"];
      };
    };
    responses: {
      /** @description Accepted; the body is ignored */
      "2XX": {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
    };
  };
  presentationWebhook: {
    parameters: {
      query?: never;
      header: {
        /** @description Id of this delivery; except for web steps also `deliveries[].id` of the session */
        "Idempotency-Key": string;
        /** @description Same value, as the header of Standard Webhooks */
        "webhook-id"?: string;
        /** @description Time of this call in seconds since 1970. Reject calls that differ by more than five minutes */
        "webhook-timestamp"?: string;
        /** @description `v1,` and the base64 of HMAC-SHA-256 over `<webhook-id>.<webhook-timestamp>.<body>`, the body byte for byte; one for each secret that signs, separated by spaces */
        "webhook-signature"?: string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["PresentationDelivery"];
      };
    };
    responses: {
      /** @description Taken */
      "2XX": {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["PresentationAnswer"];
        };
      };
    };
  };
  webStepWebhook: {
    parameters: {
      query?: never;
      header: {
        /** @description Id of this delivery; except for web steps also `deliveries[].id` of the session */
        "Idempotency-Key": string;
        /** @description Same value, as the header of Standard Webhooks */
        "webhook-id"?: string;
        /** @description Time of this call in seconds since 1970. Reject calls that differ by more than five minutes */
        "webhook-timestamp"?: string;
        /** @description `v1,` and the base64 of HMAC-SHA-256 over `<webhook-id>.<webhook-timestamp>.<body>`, the body byte for byte; one for each secret that signs, separated by spaces */
        "webhook-signature"?: string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["WebStepQuestion"];
      };
    };
    responses: {
      /** @description Accepted; the body is ignored */
      "2XX": {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
    };
  };
}
