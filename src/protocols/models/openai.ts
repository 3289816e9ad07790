import type { Model, Protocol } from '../../config/types.js';
import { createdAt } from './anthropic.js';

/** Whether the endpoints of a protocol are OpenAI-shaped: one list of models serves all of these. */
const isOfChatFamily: Readonly<Record<Protocol, boolean>> = {
  chat: true,
  responses: true,
  messages: false,
  generateContent: false,
  completions: true,
  embeddings: true,
  rerank: true,
  moderations: true,
  audio: true,
  images: true,
  video: true,
  realtime: true,
};

export function offeredInChatFamily(model: Model): boolean {
  for (const protocol of model.protocols) if (isOfChatFamily[protocol]) return true;
  return false;
}

/** JSON text of one model as the chat family writes it. */
export function chatModel(model: Model): string {
  return `{${chatFields(model)}}`;
}

/** JSON text of the chat list, which knows no pages. */
export function chatModelList(models: readonly Model[]): string {
  return `{"object":"list","data":[${models.map(chatModel).join()}]}`;
}

/** JSON text of one model with the fields of both the chat and the messages family. */
export function chatAndMessagesModel(model: Model): string {
  return `{${chatFields(model)},"type":"model","display_name":${JSON.stringify(model.name)},"created_at":"${createdAt(model)}"}`;
}

/** JSON text of a chat list that a messages client reads as a last page. */
export function chatAndMessagesModelList(models: readonly Model[]): string {
  const firstId = JSON.stringify(models[0]?.name ?? null);
  const lastId = JSON.stringify(models.at(-1)?.name ?? null);
  return `{"object":"list","data":[${models.map(chatAndMessagesModel).join()}],"has_more":false,"first_id":${firstId},"last_id":${lastId}}`;
}

function chatFields(model: Model): string {
  return `"id":${JSON.stringify(model.name)},"object":"model","created":${model.created},"owned_by":"model-gateway"`;
}
