import { LOWER_N } from './bytes.js';
import { isList, objectOf } from './json.js';

/*
 * Members by which calls are routed, limited or metered. They are read in the bodies of every protocol. If a protocol
 * does not have a member, its upstreams refuse or ignore it; no other meaning of any of them is known.
 */

/** Members that bound the answer. */
export const outputMembers = {
  /** Maximum tokens of one answer. The largest value counts, since upstreams differ in which member they read. */
  maxTokens: ['max_completion_tokens', 'max_tokens', 'max_output_tokens'],
  /** Number of requested answers. */
  choices: ['n'],
  /** Objects in which other protocols have these members. */
  configs: ['generationConfig', 'generation_config'],
} as const;

/** Members by which a body continues an earlier call, or names state that an upstream has kept of one. */
export const continuationMembers = ['previous_response_id', 'thread', 'conversation', 'container'] as const;

/** Member by which the answer is fetched by a later request with its id. */
export const backgroundMember = 'background';

/** Member with the tools, which may run at the upstream, within state that it has kept of an earlier call. */
export const toolsMember = 'tools';

/** Member whose list has items that may bring tools of their own, in a member with the same name. */
export const itemsMember = 'input';

/** Members of the body itself. Clients must not be able to send them past the check that reads them. */
export const routedMembers: readonly string[] = [
  ...['model', 'stream', 'stream_options'],
  ...outputMembers.choices,
  ...outputMembers.maxTokens,
];

/** Member with plugins of OpenRouter, some of which ask other models. */
export const pluginsMember = 'plugins';

/** Ids of the plugins that do not (https://openrouter.ai/docs/guides/features/plugins/overview). */
const plainPlugins: ReadonlySet<unknown> = new Set([
  ...['web', 'web-fetch', 'file-parser', 'response-healing', 'context-compression', 'moderation'],
]);

/** Whether the value of `plugins` makes an upstream ask no other model. */
export function asksNoModel(plugins: unknown): boolean {
  if (plugins === null) return true;
  return isList(plugins) && plugins.every((plugin) => plainPlugins.has(objectOf(plugin).id));
}

/** Members by which LiteLLM, OpenRouter and others would send a call elsewhere than the routing says. */
export const steeringMembers = [
  'api_base',
  'base_url',
  'api_key',
  'custom_llm_provider',
  'models',
  'fallbacks',
  'provider',
  'route',
  'model_list',
  'user_config',
  'context_window_fallbacks',
  'content_policy_fallbacks',
  'extra_headers',
  'extra_query',
  'fallback_models',
  'router_settings_override',
  'litellm_credential_name',
  'aws_bedrock_runtime_endpoint',
  'azure_endpoint',
  'vertex_project',
  'vertex_location',
  // OpenRouter and Vercel's gateway.
  'preset',
  'providerOptions',
  'extra_body',
  // Azure. In the query of a session, these replace the model.
  'deployment',
  'deployment_id',
  pluginsMember,
  // SGLang, TensorRT-LLM, mlx-omni-server and mlx-lm: an adapter of the model, in mlx-lm also a model beside it.
  'lora_path',
  'lora_request',
  'adapter_path',
  'adapters',
  'draft_model',
  // SGLang, vLLM and TensorRT-LLM: the server from which the cache of a prompt or of its images is fetched.
  'bootstrap_host',
  'kv_transfer_params',
  'ec_transfer_params',
  'disaggregated_params',
] as const;
export type SteeringMember = (typeof steeringMembers)[number];

/** Those that their servers take as absent if they are null, as clients send them that write out what is not set. */
const absentIfNull: ReadonlySet<SteeringMember> = new Set([
  ...(['lora_path', 'lora_request', 'adapter_path', 'adapters', 'draft_model'] as const),
  ...(['bootstrap_host', 'kv_transfer_params', 'ec_transfer_params', 'disaggregated_params'] as const),
]);

/**
 * Whether a steering member with a value is as good as absent.
 * @param first first byte of the value's JSON
 */
export function isAbsent(member: SteeringMember, first: number | undefined): boolean {
  return first === LOWER_N && absentIfNull.has(member);
}
